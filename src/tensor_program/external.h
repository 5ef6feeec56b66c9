// External functions: functions of a library that a stage of a tensor program can call by label,
//
//   stage C[i:128, j:64] = extern "cblas_sgemm"(A, B): float32;
//
// whatever number of operators that stage stands for. A function gets whole dense arrays as DLPack
// tensors and fills the destination, which the caller allocates. Backends register theirs when they
// are registered; labels are global.
#pragma once

#include <dlpack/dlpack.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/type.h"

namespace collage::tensor_program {

struct ExternalFunction {
  std::string label;
  /// The destination's type for inputs of these, or why they do not fit.
  std::function<Result<TensorType>(std::span<const TensorType>)> type;
  std::function<Status(std::span<const DLTensor>, const DLTensor& destination)> call;
  /// The input that the function updates in place, of the destination's type: it gets the
  /// destination for it, which holds that input's values. Graph functions see a new value all the
  /// same.
  std::optional<size_t> updates = std::nullopt;
};

/// A label that is there already keeps its function.
void register_external(ExternalFunction function);
const ExternalFunction* find_external(std::string_view label);  ///< null when there is none
std::vector<std::string> external_labels();                     ///< sorted

/// Calls the function. What it updates is copied to the destination first, unless it lies there.
Status call_external(const ExternalFunction& function, std::span<const DLTensor> inputs,
                     const DLTensor& destination);

/// DLPack's view of memory: `shape` must outlive it.
DLTensor dl_tensor(DType dtype, std::span<const int64_t> shape, void* data);

}  // namespace collage::tensor_program
