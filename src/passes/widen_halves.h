// Computes in float32 what a function computes in float16 or bfloat16. Parameters, results and the
// types of called functions stay, with casts behind and in front of them; constants are converted,
// which is exact; casts between float types that only served half-width tensors are removed.
// Integers, booleans, float32 and float64 stay.
//
//   fn (%x: Tensor[(4), float16])       fn (%x: Tensor[(4), float16])
//     nn.relu(add(%x, %x))          →     %0 = cast(%x, dtype="float32");
//                                         cast(nn.relu(add(%0, %0)), dtype="float16")
//
// Roundings to half between operators are left out, so results are at least as precise as the
// model's; they differ from the model's own by these roundings, and by more where a rounding makes
// a jump:
//
//   - values beyond float16's range stay finite;
//   - comparisons, argmax, floor … separate numbers that round to the same half;
//   - a cast to half and back in a float32 model rounds no more.
//
// It runs before all passes that fold and match, so that these see float32.
#pragma once

#include <optional>

#include "passes/pass.h"

namespace collage {

Result<Function> widen_halves(const Function& function);

// Returns the coarsest half-width type of any tensor in the module's functions; none if all are
// wider.
std::optional<DType> coarsest_half(const Module& module);

}  // namespace collage
