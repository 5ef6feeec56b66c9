#include "tensor_program/external.h"

#include <cstring>
#include <map>
#include <mutex>

#include "base/no_exceptions.h"
#include "base/printable.h"
#include "runtime/dlpack_type.h"
#include "runtime/run_number.h"

namespace collage::tensor_program {
namespace {

struct ExternalRegistry {
  std::mutex mutex;
  std::map<std::string, ExternalFunction, std::less<>> by_label;
  std::map<std::string, MakeExternal> by_prefix;
  std::map<std::string, std::string, std::less<>> nodes;  // labels of more nodes
};
ExternalRegistry& externals() {
  static auto* instance = new ExternalRegistry;
  return *instance;
}

template <typename Predicate>
const ExternalFunction* find_external_if(const Predicate& predicate) {
  std::lock_guard lock(externals().mutex);
  for (const auto& [label, function] : externals().by_label)
    if (predicate(function)) return &function;
  return nullptr;
}

size_t bytes_of(const DLTensor& tensor) {
  size_t bytes = (size_t{tensor.dtype.bits} + 7) / 8 * tensor.dtype.lanes;
  for (int d = 0; d < tensor.ndim; ++d) bytes *= static_cast<size_t>(tensor.shape[d]);
  return bytes;
}

}  // namespace

bool register_external(ExternalFunction function) {
  if (!function.onnx.empty() && find_external_node(function.onnx) != nullptr) return false;
  std::lock_guard lock(externals().mutex);
  std::string label = function.label;
  return externals().by_label.try_emplace(std::move(label), std::move(function)).second;
}

bool register_external(std::string label,
                       std::function<Result<TensorType>(std::span<const TensorType>)> type,
                       std::function<Status(std::span<const DLTensor>, const DLTensor&)> call,
                       std::optional<size_t> updates) {
  ExternalFunction function;
  function.label = std::move(label);
  function.types = [type = std::move(type)](std::span<const TensorType> inputs,
                                            const Attrs&) -> Result<std::vector<TensorType>> {
    return std::vector<TensorType>{TRY(type(inputs))};
  };
  function.call = [call = std::move(call)](std::span<const DLTensor> inputs,
                                           std::span<const DLTensor> results,
                                           const Attrs&) { return call(inputs, results[0]); };
  if (updates) function.updates = {*updates};
  return register_external(std::move(function));
}

bool register_externals(std::string prefix, MakeExternal make) {
  std::lock_guard lock(externals().mutex);
  return externals().by_prefix.try_emplace(std::move(prefix), std::move(make)).second;
}

Result<const ExternalFunction*> require_external(std::string_view label) {
  MakeExternal make;
  {
    std::lock_guard lock(externals().mutex);
    const auto found = externals().by_label.find(label);
    if (found != externals().by_label.end()) return &found->second;
    for (const auto& [prefix, family] : externals().by_prefix)
      if (label.starts_with(prefix)) make = family;
  }
  if (!make) return bad_model("there is no external function '{}'", printable(label));
  Result<ExternalFunction> made = without_exceptions([&] { return make(std::string(label)); });
  if (!made) return std::move(made).status().with_context(printable(label));
  made->label = label;
  register_external(*std::move(made));  // unless another thread was first
  return require_external(label);
}

const ExternalFunction* find_external(std::string_view label) {
  const Result<const ExternalFunction*> found = require_external(label);
  return found ? *found : nullptr;
}

const ExternalFunction* find_external_node(std::string_view node) {
  std::string label;
  {
    std::lock_guard lock(externals().mutex);
    const auto found = externals().nodes.find(node);
    if (found != externals().nodes.end()) label = found->second;
  }
  if (!label.empty()) return find_external(label);
  return find_external_if([&](const ExternalFunction& function) { return function.onnx == node; });
}

bool register_external_node(std::string node, std::string label) {
  const ExternalFunction* known = find_external_node(node);
  if (known != nullptr) return known->label == label;
  std::lock_guard lock(externals().mutex);
  return externals().nodes.try_emplace(std::move(node), std::move(label)).second;
}

bool has_local_functions() {
  return find_external_if([](const ExternalFunction& function) {
           return function.is_local || function.has_effects;
         }) != nullptr;
}

Result<Attrs> normalised(const ExternalFunction& function, const Attrs& attrs) {
  OpDef declared;
  declared.name = function.label;
  declared.attrs = function.attributes;
  declared.has_open_attrs = function.has_open_attributes;
  return declared.normalise(attrs);
}

Result<std::vector<TensorType>> result_types(const ExternalFunction& function,
                                             std::span<const TensorType> inputs,
                                             const Attrs& attrs) {
  std::vector<TensorType> types = TRY(function.types(inputs, TRY(normalised(function, attrs))));
  if (types.empty()) return bad_model("{} gives nothing", function.label);
  for (const TensorType& type : types)
    TRY(checked_num_elements(type.shape).with_context(function.label));
  if (function.updates.size() > types.size())
    return bad_model("{} updates {} inputs and gives {} results", function.label,
                     function.updates.size(), types.size());
  for (size_t i = 0; i < function.updates.size(); ++i) {
    const size_t input = function.updates[i];
    if (input >= inputs.size())
      return bad_model("{} updates its input {} and takes {}", function.label, input,
                       inputs.size());
    if (!(inputs[input] == types[i]))
      return bad_model("{} cannot update a {}", function.label, inputs[input].to_string());
  }
  return types;
}

Result<TensorType> result_type(const ExternalFunction& function,
                               std::span<const TensorType> inputs) {
  if (function.has_effects)
    return bad_model("{} has effects: graph functions may call it, stages may not", function.label);
  std::vector<TensorType> types = TRY(result_types(function, inputs, {}));
  if (types.size() != 1)
    return bad_model("{} gives {} arrays, a stage is one", function.label, types.size());
  return std::move(types[0]);
}

Status call_external(const ExternalFunction& function, std::span<const DLTensor> inputs,
                     std::span<const DLTensor> results, const Attrs& attrs) {
  std::vector<DLTensor> given(inputs.begin(), inputs.end());
  for (size_t i = 0; i < function.updates.size(); ++i) {
    DLTensor& input = given.at(function.updates[i]);
    if (input.data == results[i].data) continue;
    if (const size_t bytes = bytes_of(results[i]); bytes > 0)
      std::memcpy(results[i].data, input.data, bytes);
    input.data = results[i].data;
  }
  if (function.has_effects && !RunNumber::of_user()) {
    for (const DLTensor& result : results.subspan(function.updates.size()))
      if (const size_t bytes = bytes_of(result); bytes > 0) std::memset(result.data, 0, bytes);
    return {};
  }
  const Attrs all = TRY(normalised(function, attrs));
  return without_exceptions([&] { return function.call(given, results, all); })
      .with_context(function.label);
}

DLTensor dl_tensor(DType dtype, std::span<const int64_t> shape, void* data) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = dl_data_type(dtype);
  if (dtype == DType::kBool) tensor.dtype.code = 6;  // kDLBool, which old headers lack
  tensor.shape = const_cast<int64_t*>(shape.data());
  return tensor;
}

}  // namespace collage::tensor_program
