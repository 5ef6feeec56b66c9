#include <collage/operators.h>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "compiler/compile.h"
#include "ops/interpreter.h"
#include "passes/passes.h"
#include "tensor_program/defined_operator.h"
#include "verify/comparison.h"

namespace collage {

namespace {

Status check_case(const OpCase& op_case, const std::string& target) {
  const OpCaseFunction built = TRY(build_case(op_case, 1));
  const std::vector<Tensor> expected = TRY(interpret(built.function, built.inputs));
  Module module(built.function);
  TRY(simplification_pipeline().run(module));
  ProgramOptions options;
  options.targets = {target};
  Program program = TRY(Program::compile(model_of(module), options));
  const std::vector<Tensor> actual = TRY(program.run(built.inputs));
  for (size_t i = 0; i < expected.size(); ++i) {
    const Difference difference = compare_tensors(actual[i], expected[i], model_tolerance());
    if (!difference.within)
      return error(ErrorCode::kVerification, "result {}: {}", i, difference.reason);
  }
  return {};
}

}  // namespace

Status define_operator(const OperatorDefinition& definition) {
  return without_exceptions([&]() -> Status {
    register_all();
    return tensor_program::define(definition);
  });
}

Status check_operator(const std::string& name, const std::vector<std::string>& targets) {
  return without_exceptions([&]() -> Status {
    register_all();
    const tensor_program::DefinedOperator* op = tensor_program::find_defined(name);
    if (op == nullptr) return usage_error("no operator {} was defined", name);
    std::vector<std::string> all = targets;
    if (all.empty())
      for (const Backend* backend : all_backends())
        if (backend->available().ok()) all.push_back(backend->name());
    for (const OpCase& op_case : TRY(cases_of(*op)))
      for (const std::string& target : all)
        TRY(check_case(op_case, target)
                .with_context(fmt::format("{} on {}", op_case.to_string(), target)));
    return {};
  });
}

}  // namespace collage
