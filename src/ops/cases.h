// Test cases of the operators: shapes that are hard to get right (odd extents, one channel, groups,
// dilation, asymmetric padding, batches). Every backend's tests compare the operators that it
// claims with the reference kernel. They live here, next to their families, so that a new operator
// brings its own.
//
//   for (const OpCase& c : op_cases()) {
//     OpCaseFunction built = TRY(build_case(c, seed));
//     … compile built.function, run it on built.inputs, compare with interpret() …
//   }
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ops/random_inputs.h"

namespace collage {

struct OpArg {
  TensorType type;
  bool is_constant = false;  // a weight: embedded in the function
  ValueRange range = {};
};

struct OpCase {
  std::string op;
  std::vector<OpArg> args;
  Attrs attrs = {};
  bool as_tuple = false;          // the arguments are the fields of one tuple argument
  std::string to_string() const;  // "nn.relu(Tensor[(3), float32]) {}"
};

const std::vector<OpCase>& op_cases();              // of all operators; needs no registration
std::vector<OpCase> op_cases(std::string_view op);  // of one

struct OpCaseFunction {
  Function function;           // one call; parameters are the arguments that are no constants
  std::vector<Tensor> inputs;  // seeded random values for the parameters
};
Result<OpCaseFunction> build_case(const OpCase& op_case, uint64_t seed);

}  // namespace collage
