// Tensor programs in graph functions. A call of the operator "tensor_program" computes what the
// program in its attribute does, filling results that the caller allocates:
//
//   tensor_program(%x, %w, program="program { param A: float32[4, 8]; … }")
//
// Arguments are the program's parameters in order, the value its result, or a tuple of them. A
// module may name programs and functions of libraries (ir/module.h) and call them like functions:
//
//   program @scale {
//     param A: float32[4];
//     result C[i:4] = A[i] * 2.0f;
//   }
//   extern @product(Tensor[(64, 128), float32], Tensor[(128, 32), float32]) = "cblas_sgemm";
//
// the latter by label (external.h). Their types follow. `link_programs` turns such calls into calls
// of the operator, so that partitioning, measuring and backends see one thing.
#pragma once

#include <memory>
#include <string>

#include "ir/module.h"
#include "ir/text_reader.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

inline constexpr const char* kCallOp = "tensor_program";

void register_call_op();

/// What a call of the operator computes: its program, verified when the call was typed, and its
/// accesses proven to stay inside its arrays (accesses.h).
Result<Program> program_of_call(const CallNode& call);

/// What stands behind `program @name` or `extern @name`, for ParseOptions::abstract_function; or
/// what is wrong, and where.
Result<std::shared_ptr<const AbstractFunction>> abstract_function(const std::string& kind,
                                                                  TextReader& reader);

/// Calls of the module's programs and external functions become calls of the operator; they
/// themselves go. True where there were any.
Result<bool> link_programs(Module& module);

}  // namespace collage::tensor_program
