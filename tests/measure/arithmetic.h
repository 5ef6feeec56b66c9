// Right kernels that round in their own way: convolutions (3x3, one group, stride 1, padding 1, one
// image) and matrix products (nn.dense) computed as libraries do; all other operators as the
// reference does.
#pragma once

#include <string>

#include "backend/rounding.h"
#include "ops/interpreter.h"

namespace collage::testing {

struct Arithmetic {
  std::string name;
  Rounding rounding;      // that a variant would state
  EvaluateCall evaluate;  // for interpret()
};

// Sums in float32, first term first and last term first.
Arithmetic forward_sums();
Arithmetic backward_sums();
// Winograd's F(2x2, 3x3) or F(4x4, 3x3) in float32.
Arithmetic winograd(int outputs);
// Factors as sums of two bfloat16 numbers; every tensor rounded to bfloat16.
Arithmetic bfloat16_pairs();
Arithmetic bfloat16();
// Factors as multiples of a unit of their tensor: of 14 bits for data, for weights of `bits` and
// one unit a column.
Arithmetic integers(int bits);

}  // namespace collage::testing
