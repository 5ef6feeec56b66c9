// Operators that users define by programs over symbols (include/collage/operators.h): registered
// like those of src/ops, and replaced in a model by calls of their programs (call.h), so that what
// compiles programs compiles them.
#pragma once

#include <collage/operators.h>

#include "ops/cases.h"
#include "tensor_program/symbolic_program.h"

namespace collage::tensor_program {

struct DefinedOperator {
  OperatorDefinition definition;
  SymbolicProgram program;
};

/// Whether it is "domain::Operator".
bool is_node_name(std::string_view name);

/// As define_operator, where the operators of src/ops and call.h's are registered. What is defined
/// stays for the rest of the process.
Status define(const OperatorDefinition& definition);
/// Null where nobody defined it.
const DefinedOperator* find_defined(std::string_view name);
/// That a node means: "domain::Operator", "::Operator" in the standard domain.
const DefinedOperator* find_defined_node(std::string_view node);

/// The operator's own cases, or some with sizes that are hard to get right. An error where one, or
/// each of those made up, is none.
Result<std::vector<OpCase>> cases_of(const DefinedOperator& op);

/// Calls of defined operators become calls of their programs.
Result<Function> expand_defined(const Function& function);

}  // namespace collage::tensor_program
