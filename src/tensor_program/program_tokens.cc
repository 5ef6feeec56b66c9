#include "tensor_program/program_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "base/printable.h"
#include "tensor_program/range.h"

namespace collage::tensor_program {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Whether a character starts here, of UTF-8.
bool is_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

template <typename T>
Result<T> read_number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (stop != end || code != std::errc()) return bad_model("no number: {}", printable(text));
  return value;
}

}  // namespace

std::string TextPlace::to_string() const { return fmt::format("line {}, column {}", line, column); }

std::vector<Token> tokens_of(std::string_view text, TextPlace place) {
  std::vector<Token> tokens;
  size_t end = 0;
  for (size_t i = 0; i < text.size(); i = end) {
    const char c = text[i];
    end = i + 1;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      place = c == '\n' ? TextPlace{place.line + 1, 1} : TextPlace{place.line, place.column + 1};
      continue;
    }
    if (text.substr(i, 2) == "//") {
      while (end < text.size() && text[end] != '\n') ++end;
      continue;  // only the end of a line follows
    }
    Token::Kind kind = Token::Kind::kMark;
    std::string_view inside;  // of a string
    if (starts_name(c)) {
      kind = Token::Kind::kName;
      while (end < text.size() && in_name(text[end])) ++end;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      kind = Token::Kind::kNumber;
      while (end < text.size() &&
             (in_name(text[end]) || text[end] == '.' ||
              ((text[end] == '-' || text[end] == '+') && text[end - 1] == 'e')))
        ++end;
    } else if (c == '"') {
      kind = Token::Kind::kString;
      while (end < text.size() && text[end] != '"' && text[end] != '\n') ++end;
      inside = text.substr(i + 1, end - i - 1);
      if (end < text.size() && text[end] == '"') ++end;
    } else {
      for (std::string_view two : {"==", "!=", "<=", ">=", "&&", "||"})
        if (text.substr(i, 2) == two) end = i + 2;
    }
    const std::string_view word = text.substr(i, end - i);
    tokens.push_back({kind, std::string(kind == Token::Kind::kString ? inside : word), place});
    place.column += static_cast<size_t>(std::count_if(word.begin(), word.end(), is_character));
  }
  tokens.push_back({Token::Kind::kEnd, "the end", place});
  return tokens;
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
