// Whether a program stays inside its arrays, whatever the values that it is given. Programs that
// come as text are untrusted, and compiled code does not look at indices: so every index, of what
// is read and of what is written, has to be proven in range (range.h), and external functions have
// to take and give arrays of the types that stand there. An index that is read from an array is in
// range where the program clamps it: A[min(max(n[i], 0), 9)].
#pragma once

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// The first access that cannot be proven. The program is verified (`verify`). kUnavailable: an
/// external function that is not here. `where` gets the stage's name.
Status check_accesses(const Program& program, std::string* where = nullptr);

}  // namespace collage::tensor_program
