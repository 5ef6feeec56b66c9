#include "ir/text_types.h"

#include <charconv>

namespace collage {

using Kind = Token::Kind;

namespace {

Result<DType> dtype(TextReader& reader) {
  if (!reader.is(Kind::kName)) return reader.expected("a type");
  Result<DType> dtype = parse_dtype(reader.token().text);
  if (!dtype) return reader.expected("a type");
  TRY(reader.step());
  return dtype;
}

}  // namespace

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
    tensor.shape = TRY(reader.list(")", [&] { return parse_integer(reader); }));
    TRY(reader.expect(","));
    tensor.dtype = TRY(dtype(reader));
    TRY(reader.expect("]"));
    TRY(at(start, checked_num_elements(tensor.shape)));
    return Type(std::move(tensor));
  }
  return Type(TensorType{{}, TRY(dtype(reader))});
}

}  // namespace collage
