// Checks whether a stage without an initial value gets all its elements, so that none has to be
// written beforehand:
//
//   result C[i:4, j:13]: float32;                 nothing, or zeros where some element is not set
//   update C[i, r] = set(r:10) x[i, r];           columns 0 to 9
//   update C[i, r + 10] = set(r:3) y[i, r];       and 10 to 12
#pragma once

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Returns whether the updates that the stage begins with, all kSet, are known to write each
/// element before one is read. Recognises updates that each write the whole stage, or part of it
/// along one common dimension.
bool sets_all_elements(const Stage& stage);

}  // namespace collage::tensor_program
