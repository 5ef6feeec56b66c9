// The table of elementwise operators and what each is in oneDNN's words.
#pragma once

#include <string>
#include <vector>

#include "backend/onednn/composite.h"

namespace collage::onednn {

// The operators of the table; what they are applied to decides whether they are steps.
std::vector<std::string> step_operators();

// The step that `call` makes of `running`, which stands at argument `position`; `other` is the
// other argument of a two-argument operator (null: none, or the running value itself on both
// sides).
Result<Step> make_step(const CallNode& call, size_t position, const Operand* other);

// The steps that `call`, an addition, makes of the running value and integers q:
// running + scale * (q - zero_point) = scale * (running / scale - zero_point + q).
Result<std::vector<Step>> make_dequantised_steps(const CallNode& call, const Operand& integers,
                                                 const Quantisation& quantisation);

// The steps of qnn.quantize to bytes of that type and qnn.dequantize, which may see other scales.
std::vector<Step> make_rounding_steps(Type bytes, const Quantisation& from, const Quantisation& to);

}  // namespace collage::onednn
