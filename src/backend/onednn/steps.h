// The table of elementwise operators and their oneDNN algorithms.
#pragma once

#include <string>
#include <vector>

#include "backend/onednn/composite.h"

namespace collage::onednn {

// Returns the operators of the table; their arguments decide whether they are steps.
std::vector<std::string> step_operators();

// Returns the step that `call` makes of `running`, its argument `position`; `other` is the
// other argument of a two-argument operator (null: none, or the running value itself on both
// sides).
Result<Step> make_step(const CallNode& call, size_t position, const Operand* other);

// Returns the steps that `call`, an addition, makes of the running value and integers q:
// running + scale * (q - zero_point) = scale * (running / scale - zero_point + q).
Result<std::vector<Step>> make_dequantised_steps(const CallNode& call, const Operand& integers,
                                                 const Quantisation& quantisation);

// Returns the steps of qnn.quantize to bytes of that type and qnn.dequantize with its own scales.
std::vector<Step> make_rounding_steps(Type bytes, const Quantisation& from, const Quantisation& to);

}  // namespace collage::onednn
