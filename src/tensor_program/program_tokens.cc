#include "tensor_program/program_tokens.h"

#include <charconv>
#include <limits>

#include "base/printable.h"
#include "tensor_program/range.h"

namespace collage::tensor_program {
namespace {

template <typename T>
Result<T> read_number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (stop != end || code != std::errc()) return bad_model("no number: {}", printable(text));
  return value;
}

}  // namespace

TokenReader::TokenReader(std::string_view text, TextPlace first) {
  Lexer lexer(text, {}, first);
  do tokens_.push_back(lexer.next());
  while (tokens_.back().kind != Token::Kind::kEnd);
  tokens_.back().text = "the end";
}

const Token& TokenReader::next() {
  const Token& token = peek();
  if (token.kind != Token::Kind::kEnd) ++at_;
  return token;
}

bool TokenReader::accept(std::string_view text) {
  if (!is(text)) return false;
  next();
  return true;
}

Status TokenReader::take(std::string_view text) {
  return accept(text) ? Status() : unexpected("'" + std::string(text) + "'");
}

Result<std::string> TokenReader::name() {
  if (peek().kind != Token::Kind::kName) return unexpected("a name");
  return next().text;
}

Status TokenReader::unexpected(std::string_view wanted) const {
  return bad_model("'{}' where {} should stand", printable(peek().text), wanted);
}

Result<Term> number_of(std::string text, bool negative) {
  DType dtype = DType::kInt32;
  const auto ends = [&](std::string_view end) {
    if (!text.ends_with(end)) return false;
    text.resize(text.size() - end.size());
    return true;
  };
  if (const size_t mark = text.find('_'); mark != std::string::npos) {
    dtype = TRY(parse_dtype(text.substr(mark + 1)));
    text.resize(mark);
  } else if (ends("i64")) {
    dtype = DType::kInt64;
  } else if (text == "inff" || text == "nanf" || text.find('.') != std::string::npos ||
             text.starts_with("inf") || text.starts_with("nan") ||
             text.find('e') != std::string::npos) {
    dtype = ends("d") ? DType::kFloat64 : DType::kFloat32;
    if (dtype == DType::kFloat32) ends("f");
    if (text == "in") text = "inf";
  }
  if (is_float(dtype)) {
    if (text == "inf" || text == "nan") {
      using Limits = std::numeric_limits<double>;
      const double value = text == "inf" ? Limits::infinity() : Limits::quiet_NaN();
      return constant(negative ? -value : value, dtype);
    }
    const double value = dtype == DType::kFloat32
                             ? static_cast<double>(TRY(read_number<float>(text)))
                             : TRY(read_number<double>(text));
    return constant(negative ? -value : value, dtype);
  }
  const uint64_t size = TRY(read_number<uint64_t>(text));
  const auto value = static_cast<int64_t>(negative ? ~size + 1 : size);
  const auto range = range_of_type(dtype);
  const bool held =
      range ? value >= range->low && value <= range->high && (value < 0) == (negative && size != 0)
            : !negative;
  if (!held) return bad_model("{}{} is no {}", negative ? "-" : "", size, dtype_name(dtype));
  return integer_constant(value, dtype);
}

}  // namespace collage::tensor_program
