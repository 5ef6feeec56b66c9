// Calls of users' intrinsics, one a tile. No call of Halide's stores several elements: a sum is
//
//   for j in tile: S(j) = collage_tile("8 mine", S(j), A(first), A(next), A(last), B(j, first), …)
//
// whose operands tell Halide what is read, and how far apart it lies; the pass makes of the loop,
// over memory by then, the call
//
//   S[at] = collage_call_intrinsic("8 mine", S, A, B, {at, at in A, at in B, their rows})
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/native/codegen/translate.h"

namespace collage::native {

/// The axes of a tile and how many points of each it has, those of its rows first.
std::vector<std::pair<std::string, int>> tile_of(const tensor_program::Primitive& step);
/// The name of the loop over the tile's points of that axis.
std::string tile_loop(const tensor_program::Primitive& step, const std::string& axis);

/// What the update that the step tensorises makes of a tile's first sum.
HExpr tile_call(Translator& translator, const tensor_program::Program& program,
                const tensor_program::Stage& stage, const tensor_program::Primitive& step,
                const HExpr& sum, const Translator::Scope& scope);

void call_tiles(Halide::Pipeline& pipeline);

}  // namespace collage::native
