// Results that may lie where a parameter does, since the program updates the one to get the other:
//
//   a result that is the parameter's elements, then updates of some      inout X[i:4]: float32;
//   update … a result of an external function that updates that parameter
//
// and nothing else reads the parameter. The memory planner decides whether they do: if something
// else still reads the argument, the program copies it.
#pragma once

#include <vector>

#include "tensor_program/program.h"

namespace collage::tensor_program {

struct InPlaceResult {
  const Buffer* param = nullptr;
  size_t result = 0;  ///< of the program's results
};
std::vector<InPlaceResult> in_place_results(const Program& program);

/// Returns the parameter that the stage starts from, element by element, if updates follow and
/// nothing else reads it; else null.
const Buffer* updated_param(const Program& program, const Stage& stage);

}  // namespace collage::tensor_program
