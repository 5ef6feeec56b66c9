#include "ir/text_types.h"

#include <charconv>

namespace collage {

using Kind = Token::Kind;

namespace {

constexpr size_t kMaxTypes = size_t{1} << 16;  // inside a tuple's type

Result<DType> dtype(TextReader& reader) {
  if (!reader.is(Kind::kName)) return reader.expected("a type");
  Result<DType> dtype = parse_dtype(reader.token().text);
  if (!dtype) return reader.expected("a type");
  TRY(reader.step());
  return dtype;
}

}  // namespace

Status count_types(const Type& type, int depth, size_t& count) {
  if (++count > kMaxTypes) return bad_model("a tuple of more than {} tensors", kMaxTypes);
  if (!type.is_tuple()) return {};
  if (depth == kMaxTextNesting)
    return bad_model("tuples nested more than {} levels deep", kMaxTextNesting);
  for (const Type& field : type.fields()) TRY(count_types(field, depth + 1, count));
  return {};
}

Result<int64_t> parse_integer(TextReader& reader) {
  if (!reader.is(Kind::kNumber)) return reader.expected("an integer");
  int64_t value = 0;
  const char* end = reader.token().text.data() + reader.token().text.size();
  auto [stop, code] = std::from_chars(reader.token().text.data(), end, value);
  if (code != std::errc() || (stop != end && std::string_view(stop) != "i64"))
    return reader.expected("an integer");
  TRY(reader.step());
  return value;
}

namespace {

// An integer, or a term over symbols.
Result<int64_t> extent(TextReader& reader) {
  if (reader.symbols() == nullptr) return parse_integer(reader);
  const Token start = reader.token();
  const std::string_view text = reader.item();
  const int64_t value = TRY(reader.symbolic_extent());
  if (value < 0) return at(start, bad_model("the extent {} is {}", text, value));
  return value;
}

}  // namespace

Result<Type> parse_type(TextReader& reader) {
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  const auto type = [&] { return parse_type(reader); };
  Token start = reader.token();
  if (TRY(reader.accept("("))) return Type::tuple(TRY(reader.list(")", type)));
  if (TRY(reader.accept("fn"))) {
    TRY(reader.expect("("));
    std::vector<Type> params = TRY(reader.list(")", type));
    TRY(reader.expect("->"));
    Type result = TRY(parse_type(reader));
    return Type::function(std::move(params), std::move(result));
  }
  if (TRY(reader.accept("Tensor"))) {
    TRY(reader.expect("["));
    TRY(reader.expect("("));
    TensorType tensor;
    tensor.shape = TRY(reader.list(")", [&] { return extent(reader); }));
    TRY(reader.expect(","));
    tensor.dtype = TRY(dtype(reader));
    TRY(reader.expect("]"));
    TRY(at(start, checked_num_elements(tensor.shape)));
    return Type(std::move(tensor));
  }
  return Type(TensorType{{}, TRY(dtype(reader))});
}

}  // namespace collage
