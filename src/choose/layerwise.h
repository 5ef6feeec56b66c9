// Which kernel of a plan is wrong: every step runs by itself on inputs that the reference computed,
// in the encodings the plan gives them, and its outputs are compared with the reference's. So the
// error of one step is never another's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ir/expr.h"
#include "runtime/plan.h"
#include "verify/comparison.h"

namespace collage {

// What a step of the plan computes. Conversions and copies give what they take.
struct StepMeaning {
  Function function;
  Rounding rounding = {};  // of its variant
};

struct LayerDifference {
  std::string step, target;
  size_t output = 0;
  Shape shape;
  Difference difference;
};

struct LayerwiseResult {
  size_t steps = 0;
  std::optional<LayerDifference> first_wrong;  // in the order of the plan
  LayerDifference worst;                       // by the part of the allowed error
};

// `kernels`: by the step's name. The plan's kernels must not be running elsewhere.
Result<LayerwiseResult> verify_layerwise(const Plan& plan,
                                         const std::map<std::string, StepMeaning>& kernels,
                                         std::span<const Tensor> inputs,
                                         const CompileOptions& options);

// "[0, 3, 1]" of a position in row-major order.
std::string element_index(const Shape& shape, int64_t position);

}  // namespace collage
