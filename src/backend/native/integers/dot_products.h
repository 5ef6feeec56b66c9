// Sums of products of small integers, or of bfloat16, by instructions that multiply and add several
// at a time.
#pragma once

#include <vector>

#include "tensor_program/intrinsic.h"
#include "tensor_program/stage_plan.h"

namespace collage::native {

/// Those that are one instruction of this processor, in the order in which they are worth trying.
std::vector<const tensor_program::Intrinsic*> machine_intrinsics();

/// Whether this processor multiplies and adds 16-bit integers faster than real numbers, and has no
/// matrix unit, which is faster still.
bool multiplies_integers_faster();

/// Has the sum be one of the intrinsic's: what is multiplied is copied first, as numbers of the
/// operands' types, and what belongs to columns in panels of `width` of them, the terms that one
/// instruction adds up next to one another.
///
///   stage S[i, j] = sum(k:256) (int32(A[i, k]) - 3) * int32(B[j, k]);      becomes
///
///   stage S_rows[i, k:256] = int16(int32(A[i, k]) - 3);
///   stage S_columns[panel, k:128, lane:16, term:2] = int16(B[panel * 16 + lane, k * 2 + term]);
///   stage S[i, j] = sum(k:128, term:2)
///                   int32(S_rows[i, k * 2 + term]) * int32(S_columns[j / 16, k, j % 16, term]);
///
/// Rows of a convolution are read from a copy of the map, with its padding; a copy that equals what
/// it is made of is none. Rows that fit their type when something is added to them are stored so,
/// where columns are constants; the sum then begins with as much less:
///
///   stage S_start[j] = sum(k:256) int32(B[j, k]) * -3;
///   stage S[i, j] = S_start[j];  update S[i, j] = sum(k:64, term:4) int32(A[i, …]) * …;
///
/// Where an instruction adds up two groups of terms, weights are constants in an order that is read
/// with them (quad_pairs.h), in vectors of `lanes` columns:
///
///   const S_terms: int32[panels, pairs, 2]; const S_first, S_second: int8[vectors, pairs, 8, 4];
///   stage S[i, j] = sum(k:pairs, term:4)
///       int32(A[i, S_terms[j / 16, k, 0] + term]) * int32(S_first[j / 8, k, j % 8, term]) +
///       int32(A[i, S_terms[j / 16, k, 1] + term]) * int32(S_second[j / 8, k, j % 8, term]);
///
/// Weights of which too few groups go in pairs are multiplied one group at a time.
///
/// False, with no stage changed, where the sum has too odd a number of columns or terms, a copy
/// would hold more than what it is made of, or what is multiplied may not fit the types. Columns
/// divide by the width, which divides by the lanes.
bool use_intrinsic(tensor_program::StagePlan& plan, tensor_program::TiledSum& sum,
                   const tensor_program::Intrinsic& intrinsic, int64_t width, int64_t lanes);

/// Whether some sum of the plan may become one of the intrinsic's.
bool can_use_intrinsic(const tensor_program::StagePlan& plan,
                       const tensor_program::Intrinsic& intrinsic);

}  // namespace collage::native
