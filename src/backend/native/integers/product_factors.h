// What a sum multiplies, and whether instructions that multiply and add several at a time take it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor_program/stage_plan.h"

namespace collage::native {

/// An axis of a copy that stands for a position which an axis of the sum and one that it is over
/// give together, as those of a convolution do: at = row * stride + tap * dilation.
struct Window {
  std::string own;  ///< the sum's axis
  tensor_program::Axis axis;
  tensor_program::Term at;
};

/// What a sum multiplies. It is over `terms`, which instructions add up, and others.
struct Factors {
  tensor_program::Term row, column;
  /// Of the rows' factor, which is stored with it: a constant, or what else no axis changes, as a
  /// zero point that is computed. Undefined: none.
  tensor_program::Term shift;
  tensor_program::Axis terms;
  int64_t padded = 0;  ///< terms with those of zero that fill the last instruction
  std::vector<tensor_program::Axis> others;
  std::vector<Window> windows;  ///< in the row's factor, which names their axes
};

/// None where the sum has too odd a number of columns or terms, a copy would hold elements many
/// times, or what is multiplied may not fit the intrinsic's types.
std::optional<Factors> factors_of(const tensor_program::StagePlan& plan,
                                  const tensor_program::TiledSum& sum,
                                  const tensor_program::Intrinsic& intrinsic);

}  // namespace collage::native
