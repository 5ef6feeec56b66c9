// Calls of users' intrinsics, one a tile. No call of Halide's stores several elements: a sum is
//
//   for j in tile: S(j) = collage_tile("8 mine", S(j), A(first), A(last), B(j, first), B(j, last))
//
// whose operands tell Halide what is read; the pass makes of the loop, over memory by then, the
// call
//
//   S[at] = collage_call_intrinsic("8 mine", S, at, A, B, at in A << 32 | at in B)
#pragma once

#include "backend/native/codegen/translate.h"

namespace collage::native {

inline constexpr char kTileLoop[] = "__tile";  ///< behind the axis: the loop over a tile's lanes

/// What the update that the step tensorises makes of a tile's first sum.
HExpr tile_call(Translator& translator, const tensor_program::Update& update,
                const tensor_program::Primitive& step, const HExpr& sum,
                const Translator::Scope& scope);

void call_tiles(Halide::Pipeline& pipeline);

}  // namespace collage::native
