#include "ir/text_metadata.h"

#include <string>

#include "base/json.h"
#include "ir/side_file.h"
#include "ir/text_constants.h"

namespace collage {

namespace {

using nlohmann::json;
constexpr size_t kMaxConstants = size_t{1} << 24;

Status check_type(size_t index, const TensorType& actual, const std::optional<TensorType>& type) {
  if (type && !(*type == actual))
    return bad_model("constant {} is a {}, annotated as {}", index, actual.to_string(),
                     type->to_string());
  return {};
}

}  // namespace

Status Metadata::read(std::string_view text) {
  json parsed = parse_json(text);
  if (!parsed.is_object()) return bad_model("the metadata section is no JSON object");
  if (parsed.contains("relay.Constant")) {
    if (!parsed["relay.Constant"].is_array())
      return bad_model("\"relay.Constant\" of the metadata section is no list");
    entries_ = std::move(parsed["relay.Constant"]);
  }
  if (!parsed.contains("side_file")) return {};
  std::string name = parsed["side_file"].is_string() ? parsed["side_file"].get<std::string>() : "";
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
    return bad_model("\"side_file\" of the metadata section is no plain file name");
  side_tensors_ = options_.side_tensors != nullptr ? *options_.side_tensors
                                                   : TRY(read_side_file(options_.folder / name));
  return {};
}

Result<Expr> Metadata::constant(size_t index, const std::optional<TensorType>& type) {
  if (index >= kMaxConstants) return bad_model("constant {} is out of range", index);
  if (index < constants_.size() && constants_[index] != nullptr) {
    TRY(check_type(index, constants_[index]->tensor_type(), type));
    return constants_[index];
  }
  Tensor value = TRY(this->value(index, type));
  TRY(check_type(index, {value.shape(), value.dtype()}, type));
  if (constants_.size() <= index) constants_.resize(index + 1);
  return constants_[index] = make_constant(std::move(value));
}

Result<Tensor> Metadata::value(size_t index, const std::optional<TensorType>& type) const {
  const json entry = index < entries_.size() ? entries_[index] : json();
  if (entry.is_object() && entry.contains("side")) {
    if (!entry["side"].is_number_unsigned() ||
        entry["side"].get<uint64_t>() >= side_tensors_.size())
      return bad_model("constant {} is not in the side file", index);
    return side_tensors_[entry["side"].get<size_t>()];
  }
  if (entry.is_object() && !entry.contains("sha256"))
    return parse_constant_entry(entry).with_context(fmt::format("constant {}", index));
  if (!type)
    return bad_model("constant {} has neither a value nor a type after it (/*Tensor[…]*/)", index);
  if (!options_.constant)
    return bad_model("constant {} is given by its type only, {}, and nothing supplies it", index,
                     type->to_string());
  return options_.constant(*type, index).with_context(fmt::format("constant {}", index));
}

}  // namespace collage
