// External functions: functions of a library that tensor programs and modules call by label,
//
//   stage C[i:128, j:64] = extern "cblas_sgemm"(A, B): float32;
//   extern @best(Tensor[(8, 100), float32]) = "mine.best";
//
// for any number of operators. A function gets whole dense arrays as DLPack tensors and fills its
// results, which the caller allocates. A stage is one array, so it calls functions of one result;
// calls from modules may have several (external_call.h). Backends register their functions when
// they are registered, users by include/collage/functions.h; labels are global.
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
  using Types = std::function<Result<std::vector<TensorType>>(std::span<const TensorType>)>;
  using Call =
      std::function<Status(std::span<const DLTensor> inputs, std::span<const DLTensor> results)>;
  std::string label;
  /// Returns the results' types for inputs of these types, or why they do not fit.
  Types types;
  Call call;
  /// The input that the function updates in place, of the first result's type: it gets that result,
  /// filled with the input's values. Graph functions see a new value all the same.
  std::optional<size_t> updates = std::nullopt;
  /// "domain::Operator": ONNX nodes that call it; empty: none.
  std::string onnx = {};
  /// True if worker processes do not have it.
  bool is_local = false;
};

/// Returns false, without a change, if the label or the ONNX node has a function already.
bool register_external(ExternalFunction function);
/// Registers a function with one result.
bool register_external(std::string label,
                       std::function<Result<TensorType>(std::span<const TensorType>)> type,
                       std::function<Status(std::span<const DLTensor>, const DLTensor&)> call,
                       std::optional<size_t> updates = std::nullopt);
const ExternalFunction* find_external(std::string_view label);      ///< null when there is none
const ExternalFunction* find_external_node(std::string_view node);  ///< likewise, by `onnx`
bool has_local_functions();                                         ///< that only this process has

/// Returns the results' types for inputs of these types: one array or more, each of a possible
/// size; an input that the function updates has the first one's type.
Result<std::vector<TensorType>> result_types(const ExternalFunction& function,
                                             std::span<const TensorType> inputs);
/// Does the same for a function with one result.
Result<TensorType> result_type(const ExternalFunction& function,
                               std::span<const TensorType> inputs);

/// Calls the function. Copies the input that it updates to the first result first, unless it lies
/// there. Errors begin with the label.
Status call_external(const ExternalFunction& function, std::span<const DLTensor> inputs,
                     std::span<const DLTensor> results);

/// Makes DLPack's view of memory; `shape` must outlive it.
DLTensor dl_tensor(DType dtype, std::span<const int64_t> shape, void* data);

}  // namespace collage::tensor_program
