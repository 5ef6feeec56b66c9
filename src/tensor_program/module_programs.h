// Tensor programs and external functions as definitions of a module (ir/module.h), which its graph
// functions call by name:
//
//   program @scale {
//     param A: float32[4];
//     result C[i:4] = A[i] * 2.0f;
//   }
//   extern @product(Tensor[(64, 128), float32], Tensor[(128, 32), float32]) = "cblas_sgemm";
//   extern @top(Tensor[(9), float32], k=3, effects=1) -> (float32, Tensor[(3), int64]) = "my.top";
//
// the latter by label (external.h), with attributes, and what the function does besides: `effects`,
// and `updates`, the parameters that its first results start from. Their types follow, a tuple
// where there are several results. `link_programs` turns calls of them into calls of operators
// (call.h, external_call.h), which partitioning, measuring and backends see; `named_programs` is
// the inverse, for people who read the module.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "ir/module.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"
#include "tensor_program/external_call.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Parses what follows `program @name` or `extern @name`, for ParseOptions::abstract_function.
/// Errors state the place. Null where headers alone are read (ir/text_symbols.h).
Result<std::shared_ptr<const AbstractFunction>> abstract_function(const std::string& kind,
                                                                  TextReader& reader);

/// Defines a program that graphs may call (call.h).
std::shared_ptr<const AbstractFunction> program_function(Program program);
/// Defines an external function, which has the effects of its registration too.
Result<std::shared_ptr<const AbstractFunction>> external_function(ExternalDeclaration declaration);
/// The program that is defined; null: it is none.
const Program* defined_program(const AbstractFunction& function);
/// The external function that is declared; null: it is none.
const ExternalDeclaration* declared_external(const AbstractFunction& function);
/// The labels of all external functions that the module declares.
std::set<std::string> declared_labels(const Module& module);

/// Takes the attributes that say what a function does from those that are its own.
Status take_declared(Attrs attrs, ExternalDeclaration& declaration);

/// Replaces calls of the module's programs, external functions and external modules by calls of
/// operators, which keep the names; removes the definitions. True if there were any.
Result<bool> link_programs(Module& module);

/// Defines each program that is called once, and calls it by the name that it had in text, else by
/// program, program_1 and so on; and attaches external modules again.
Result<Module> named_programs(const Module& module);

}  // namespace collage::tensor_program
