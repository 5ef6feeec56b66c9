#include "artifact/saved_values.h"

#include <nlohmann/json.hpp>

#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr int64_t kMostSize = int64_t{1} << 40;  // of a bucket

}  // namespace

json add_tensor(const Tensor& tensor, PlanSaver& saver) {
  return {{"type", to_json(TensorType{tensor.shape(), tensor.dtype()})},
          {"value", saver.add_constant(tensor)}};
}

json add_tensors(const std::map<std::string, Tensor>& tensors, PlanSaver& saver) {
  json all = json::object();
  for (const auto& [name, tensor] : tensors) all[name] = add_tensor(tensor, saver);
  return all;
}

Result<Tensor> tensor_from(const json& value, const SharedBytes& weights) {
  const JsonFields fields(value);
  const TensorType type = TRY(tensor_type_from(*TRY(fields.object("type"))));
  const SharedBytes bytes = TRY(constant_from(fields, "value", weights));
  if (bytes.bytes != type.bytes()) return bad_model("a constant has another size");
  auto owner = std::const_pointer_cast<void>(bytes.data);
  return Tensor::share(type.dtype, type.shape, owner, owner.get());
}

Result<std::map<std::string, Tensor>> tensors_from(const JsonFields& fields, const char* name,
                                                   const SharedBytes& weights) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [key, value] : TRY(fields.object(name))->items())
    tensors[key] = TRY(tensor_from(value, weights));
  return tensors;
}

Result<std::vector<std::string>> texts_from(const JsonFields& fields, const char* name) {
  std::vector<std::string> texts;
  for (const json& text : *TRY(fields.array(name))) {
    if (!text.is_string()) return bad_model("'{}' holds something else than names", name);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

Result<std::map<std::string, std::string>> names_from(const JsonFields& fields, const char* name) {
  std::map<std::string, std::string> names;
  const json& object = *TRY(fields.object(name));
  for (const auto& [key, value] : object.items())
    names[key] = TRY(JsonFields(object).text(key.c_str()));
  return names;
}

Result<std::map<std::string, std::vector<int64_t>>> sizes_from(const JsonFields& fields,
                                                               const char* name) {
  std::map<std::string, std::vector<int64_t>> sizes;
  const json& object = *TRY(fields.object(name));
  for (const auto& [key, value] : object.items())
    sizes[key] = TRY(integers_from(JsonFields(object), key.c_str(), 1, kMostSize, 1 << 16));
  return sizes;
}

Result<std::map<std::string, double>> numbers_from(const JsonFields& fields, const char* name) {
  std::map<std::string, double> numbers;
  const json& object = *TRY(fields.object(name));
  for (const auto& [key, value] : object.items())
    numbers[key] = TRY(JsonFields(object).number(key.c_str(), {-1e300, 1e300}));
  return numbers;
}

}  // namespace collage
