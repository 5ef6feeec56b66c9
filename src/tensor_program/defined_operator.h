// Operators that users define by programs over symbols (include/collage/operators.h): registered
// like those of src/ops, and replaced in a model by calls of their programs (call.h), so that
// backends that compile programs compile them.
#pragma once

#include <collage/operators.h>

#include "ops/cases.h"
#include "tensor_program/symbolic_program.h"

namespace collage::tensor_program {

struct DefinedOperator {
  OperatorDefinition definition;
  SymbolicProgram program;
};

/// Returns whether it is "domain::Operator".
bool is_node_name(std::string_view name);

/// Implements define_operator, after the operators of src/ops and call.h are registered.
/// Definitions stay for the rest of the process.
Status define(const OperatorDefinition& definition);
/// Returns null if it is not defined.
const DefinedOperator* find_defined(std::string_view name);
/// Finds the operator of a node: "domain::Operator", "::Operator" in the standard domain.
const DefinedOperator* find_defined_node(std::string_view node);

/// Returns the operator's own cases, or some with sizes that are hard to get right. Fails if one,
/// or each generated one, is invalid.
Result<std::vector<OpCase>> cases_of(const DefinedOperator& op);

/// Replaces calls of defined operators by calls of their programs.
Result<Function> expand_defined(const Function& function);

}  // namespace collage::tensor_program
