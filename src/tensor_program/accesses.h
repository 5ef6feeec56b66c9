// Proves that a program stays inside its arrays for all inputs. Programs that come as text are
// untrusted, and compiled code does not check indices: so every index that is read or written must
// be proven in range (range.h), and external functions must take and give arrays of the declared
// types. An index that is read from an array is in range if the program clamps it: A[min(max(n[i],
// 0), 9)].
#pragma once

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Returns the first access that cannot be proven. `program` is verified (`verify`). kUnavailable:
/// an external function is not here. `where` gets the stage's name.
Status check_accesses(const Program& program, std::string* where = nullptr);

}  // namespace collage::tensor_program
