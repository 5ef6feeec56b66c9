// A plan as text: the buffers that it names, where each lies, and the calls that fill them.
//
//   plan {
//     arena 65536;
//     %0: Tensor[(128, 128), float32] = input 0;
//     %1: Tensor[(128, 128), float32] = arena 0;
//     %2: Tensor[(128, 128), float32] = output 0;
//     native_matmul(%0) -> %1;
//     native_matmul_1(%1) -> %2;
//   }
//
// Numbers behind `arena` are bytes: its size, and where in it a buffer begins.
#pragma once

#include <string>

#include "runtime/plan.h"

namespace collage {

std::string to_text(const Plan& plan);

}  // namespace collage
