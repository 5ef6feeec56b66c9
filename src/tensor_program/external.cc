#include "tensor_program/external.h"

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
