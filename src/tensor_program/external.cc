#include "tensor_program/external.h"

#include <cstring>
#include <map>
#include <mutex>

#include "runtime/dlpack_type.h"

namespace collage::tensor_program {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, ExternalFunction, std::less<>> by_label;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

void register_external(ExternalFunction function) {
  std::lock_guard lock(registry().mutex);
  std::string label = function.label;
  registry().by_label.try_emplace(std::move(label), std::move(function));
}

const ExternalFunction* find_external(std::string_view label) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().by_label.find(label);
  return found == registry().by_label.end() ? nullptr : &found->second;
}

std::vector<std::string> external_labels() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::string> labels;
  for (const auto& [label, function] : registry().by_label) labels.push_back(label);
  return labels;
}

Status call_external(const ExternalFunction& function, std::span<const DLTensor> inputs,
                     const DLTensor& destination) {
  if (!function.updates) return function.call(inputs, destination);
  std::vector<DLTensor> updated(inputs.begin(), inputs.end());
  DLTensor& input = updated.at(*function.updates);
  if (input.data != destination.data) {
    size_t bytes = (size_t{destination.dtype.bits} + 7) / 8 * destination.dtype.lanes;
    for (int d = 0; d < destination.ndim; ++d) bytes *= static_cast<size_t>(destination.shape[d]);
    std::memcpy(destination.data, input.data, bytes);
    input.data = destination.data;
  }
  return function.call(updated, destination);
}

DLTensor dl_tensor(DType dtype, std::span<const int64_t> shape, void* data) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = dl_data_type(dtype);
  tensor.shape = const_cast<int64_t*>(shape.data());
  return tensor;
}

}  // namespace collage::tensor_program
