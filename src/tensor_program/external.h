// External functions: functions of a library that tensor programs and modules call by label,
//
//   stage C[i:128, j:64] = extern "cblas_sgemm"(A, B): float32;
//   extern @best(Tensor[(8, 100), float32]) = "mine.best";
//
// for any number of operators. A function gets whole dense arrays as DLPack tensors and fills its
// results, which the caller allocates. A stage is one array, so it calls functions of one result;
// calls from modules may have several (external_call.h). Backends register their functions when
// they are registered, users by include/collage/functions.h; labels are global.
//
// A function may declare attributes, and effects (ir/effects.h): it then is called once in each run
// of a user, in the order of the text, and never while a model is compiled, checked or timed: there
// its results are zeros.
#pragma once

#include <dlpack/dlpack.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/op.h"
#include "ir/type.h"

namespace collage::tensor_program {

struct ExternalFunction {
  using Types =
      std::function<Result<std::vector<TensorType>>(std::span<const TensorType>, const Attrs&)>;
  using Call = std::function<Status(std::span<const DLTensor> inputs,
                                    std::span<const DLTensor> results, const Attrs&)>;
  std::string label;
  /// Returns the results' types for inputs of these types, or why they do not fit.
  Types types;
  Call call;
  /// The inputs that the function updates in place, of the first results' types, in order: it gets
  /// these results, filled with the inputs' values. Graph functions see new values all the same.
  std::vector<size_t> updates = {};
  std::vector<AttrSpec> attributes = {};
  /// Calls may state others too, which `types` judges.
  bool has_open_attributes = false;
  bool has_effects = false;
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
/// Makes the functions of labels that begin with `prefix`, each when it is first looked for: a
/// family too large to be registered whole. False: the prefix has one already.
using MakeExternal = std::function<Result<ExternalFunction>(const std::string& label)>;
bool register_externals(std::string prefix, MakeExternal make);
/// Returns the function, or why there is none. Callers hold no lock: making one may take others.
Result<const ExternalFunction*> require_external(std::string_view label);
const ExternalFunction* find_external(std::string_view label);      ///< null when there is none
const ExternalFunction* find_external_node(std::string_view node);  ///< likewise, by `onnx`
/// Makes nodes of ONNX, "domain::Operator", calls of a function. Returns false, without a change,
/// if they mean another one already.
bool register_external_node(std::string node, std::string label);
/// Whether there are any that only this process may call.
bool has_local_functions();

/// Returns the attributes with defaults filled in, or why they are none of the function's.
Result<Attrs> normalised(const ExternalFunction& function, const Attrs& attrs);
/// Returns the results' types for inputs of these types: one array or more, each of a possible
/// size; inputs that the function updates have the first ones' types.
Result<std::vector<TensorType>> result_types(const ExternalFunction& function,
                                             std::span<const TensorType> inputs,
                                             const Attrs& attrs);
/// Does the same for a call by a stage: one result, no attributes, no effects.
Result<TensorType> result_type(const ExternalFunction& function,
                               std::span<const TensorType> inputs);

/// Calls the function. Copies inputs that it updates to the results first, unless they lie there.
/// Errors begin with the label.
Status call_external(const ExternalFunction& function, std::span<const DLTensor> inputs,
                     std::span<const DLTensor> results, const Attrs& attrs = {});

/// Makes DLPack's view of memory, booleans told from bytes; `shape` must outlive it.
DLTensor dl_tensor(DType dtype, std::span<const int64_t> shape, void* data);

}  // namespace collage::tensor_program
