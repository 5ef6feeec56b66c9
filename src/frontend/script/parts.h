// Parts of a module over symbols that a run counts. What depends on such a size runs after the part
// that counts it:
//
//   def @main(%x: Tensor[(n), float32]) {
//     %0 = nonzero(%x);                                             // part 0
//     %1 = match_size(%0.0, %0.1, axis=1, size=k, symbol="k");      // part 1, where k is %0.1
//     take(%x, %1)
//   }
//
// The first part has what no counted size decides, each of the next ones what those of the parts
// before it allow. Operators whose results jump with the last digits of their inputs (nonzero,
// vision.non_max_suppression, topk, argmax, argmin) begin a part, so that kernels are compared on
// equal inputs of these. A slice of at most so many elements, min(k, 100), ends one: what follows
// is the same for all larger counts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "frontend/script/symbolic_module.h"
#include "ir/module.h"

namespace collage::tensor_program {

struct ModulePart {
  /// Values by their names: the module's parameters' own, others "%3" or "%3.1" as in its text.
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> variables;  // of the body, that hold the inputs
  /// Sizes that values of parts before it are: symbols, and the values' names.
  std::map<std::string, std::string> counts;
  std::vector<Term> terms;     // over symbols, that its text has
  std::string body, metadata;  // calls and the result; the constants that these read
};

/// Returns the outputs of a part for these sizes, in order.
using ComputePart = std::function<Result<std::vector<Tensor>>(size_t part, const Symbols& values,
                                                              const std::vector<Tensor>& inputs)>;

class ModuleParts {
 public:
  /// kUnsupported: functions beside @main depend on counted sizes, or calls have effects.
  static Result<ModuleParts> of(const SymbolicModule& module);

  const std::vector<ModulePart>& parts() const { return parts_; }
  /// The names of the module's results.
  const std::vector<std::string>& results() const { return results_; }
  const SymbolicModule& module() const { return module_; }
  /// Returns a part as a module of one function; `inputs`: the types of its inputs, in order.
  Result<Module> instantiate(const ModulePart& part, const std::vector<TensorType>& inputs,
                             const Symbols& values) const;
  /// Says which instance that is: the terms that the part has, and its inputs' shapes.
  std::string key(size_t part, const Symbols& values, const std::vector<Tensor>& inputs) const;
  /// Runs part by part; `tensors`: the module's inputs by name.
  Result<std::vector<Tensor>> run(std::map<std::string, Tensor> tensors,
                                  const ComputePart& compute) const;

 private:
  explicit ModuleParts(SymbolicModule module) : module_(std::move(module)) {}

  SymbolicModule module_;
  std::string before_;  // @main
  std::vector<ModulePart> parts_;
  std::vector<std::string> results_;
};

}  // namespace collage::tensor_program
