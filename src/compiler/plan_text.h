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
// Numbers behind `arena` are bytes: its size, and where in it a buffer begins; `workspace 0` behind
// a call says where that of its kernel begins. `constant 4` is that of buffer %4. The text is all
// of a plan but its code: kernels, which calls name, and the values of constants.
#pragma once

#include <string>
#include <string_view>

#include "runtime/plan.h"

namespace collage {

std::string to_text(const Plan& plan);

// Reads a plan that runs kernels and constants of `code`, and takes and gives its tensors: what
// to_text printed of it, or that with other places, buffers, calls, and another order. It is
// checked as one from a file is (saved_plan.h), so it stays within its memory, whatever it
// computes.
Result<std::shared_ptr<const Plan>> parse_plan(std::string_view text, const Plan& code,
                                               int threads);

}  // namespace collage
