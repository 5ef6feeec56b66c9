// Operators of the user's own, defined by a tensor program over symbols.
//
//   collage::define_operator({
//       .name = "my.swiglu",
//       .onnx = "com.example::SwiGlu",
//       .program = R"(program (n, d) {
//         param X: float32[n, 2 * d];
//         result Y[i:n, j:d] = X[i, j] / (1.0f + exp(-X[i, j])) * X[i, d + j];
//       })",
//   });
//
// The program gives the operator's type rule, its reference, the import of ONNX nodes of that name,
// test cases, and kernels: in a model a call becomes a call of the program for its shapes
// (docs/tensor-programs.md), which backends compile.
#pragma once

#include <collage/plugin.h>
#include <collage/result.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace collage {

struct OperatorDefinition {
  // Its name in graphs and messages: letters, digits, '_', and at least one '.'.
  std::string name;
  // "domain::Operator": nodes that become calls of it; their inputs are the program's parameters in
  // order, their attributes those of the program. Empty: none. Nodes that Collage implements keep
  // their meaning.
  std::string onnx = {};
  // "program (symbols) { … }": first extents, which the shapes of the parameters decide, then
  // attributes as "alpha: float32 = 1.0" or "axis: int64".
  std::string program;
  // Values of extents, and of attributes of type int64, for tests; empty: they are generated.
  std::vector<std::map<std::string, int64_t>> cases = {};
};

// Defines an operator for all models that are loaded afterwards. kUsage: another operator has the
// name, or the ONNX node; kBadModel: the program is malformed, or no parameter's shape decides one
// of its extents. An equal definition may be repeated.
Status define_operator(const OperatorDefinition& definition);

// Compiles the operator for each of its test cases with each of the targets (empty: each that this
// machine offers) and compares its results with the reference. kVerification: one differs.
// kUnsupported: a case is invalid, such as a program that accesses elements outside an array.
Status check_operator(const std::string& name, const std::vector<std::string>& targets = {});

}  // namespace collage

// Makes a shared library of operators a plugin, for `collage … --plugin LIB`:
//
//   COLLAGE_OPERATORS({.name = "my.swiglu", .program = "…"}, {.name = …})
#define COLLAGE_OPERATORS(...)                                                               \
  COLLAGE_REGISTER([] {                                                                      \
    for (const auto& definition : std::vector<::collage::OperatorDefinition>{__VA_ARGS__})   \
      if (auto status = ::collage::define_operator(definition); !status.ok()) return status; \
    return ::collage::Status();                                                              \
  })
