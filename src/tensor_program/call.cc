#include "tensor_program/call.h"

#include <algorithm>
#include <cstring>

#include "ir/op.h"
#include "ir/visitor.h"
#include "tensor_program/accesses.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

/// As a graph function's.
Type type_of(const Program& program) {
  std::vector<Type> params, results;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.is_constant) params.emplace_back(buffer.type);
  for (const std::string& result : program.results()) results.emplace_back(program.type_of(result));
  return Type::function(std::move(params),
                        results.size() == 1 ? results[0] : Type::tuple(std::move(results)));
}

/// Whether graphs may call the program: its text comes from users.
Status check_callable(const Program& program) {
  for (const Buffer& buffer : program.buffers)
    if (buffer.is_constant && !buffer.value.defined())
      return bad_model("the program's constant {} has no values", buffer.name);
  return check_accesses(program);
}

Result<Type> infer_call(std::span<const Type> args, const Attrs& attrs) {
  const Program program = TRY(parse_program(attrs.string("program")));
  TRY(check_callable(program));
  const Type type = type_of(program);
  const std::vector<Type>& params = type.params();
  if (params.size() != args.size())
    return bad_model("the program takes {} tensors, not {}", params.size(), args.size());
  for (size_t i = 0; i < args.size(); ++i)
    if (!(args[i] == params[i]))
      return bad_model("the program's parameter {} is {}, not {}", i, params[i].to_string(),
                       args[i].to_string());
  return type.result();
}

Status run_call(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Program program = TRY(parse_program(attrs.string("program")));
  const std::vector<Tensor> results = TRY(evaluate(program, inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    std::memcpy(outputs[i].raw(), results[i].raw(), outputs[i].bytes());
  return {};
}

/// One operation for each value that is set, two for each that is added.
double flops(std::span<const Type>, const Attrs& attrs, const Type&) {
  const Result<Program> program = parse_program(attrs.string("program"));
  if (!program) return 0;
  double total = 0;
  for (const Stage& stage : program->stages) {
    total += static_cast<double>(num_elements(stage.shape()));
    for (const Update& update : stage.updates) {
      double points = 2;
      for (const Axis& axis : walked_axes(stage, update))
        points *= static_cast<double>(axis.extent);
      total += points;
    }
  }
  return total;
}

class ProgramFunction : public AbstractFunction {
 public:
  ProgramFunction(std::string kind, Type type, std::string text, const Program& program)
      : kind_(std::move(kind)),
        type_(std::move(type)),
        text_(std::move(text)),
        program_(program.to_string()) {
    for (const Buffer& buffer : program.buffers)
      if (!buffer.is_constant) scopes_.push_back(buffer.scope);
    for (const Stage& stage : program.stages)
      if (stage.is_result) scopes_.push_back(stage.scope);
    if (std::all_of(scopes_.begin(), scopes_.end(), [](auto& scope) { return scope.empty(); }))
      scopes_.clear();
  }
  const Type& type() const override { return type_; }
  std::string to_text() const override { return text_; }
  std::string kind_name() const override { return kind_; }
  std::vector<std::string> memory_scopes() const override { return scopes_; }
  const std::string& program() const { return program_; }

 private:
  std::string kind_;
  Type type_;
  std::string text_, program_;
  std::vector<std::string> scopes_;
};

/// One stage that calls the function of that label.
Result<Program> external_program(const std::string& label, const Type& type) {
  const ExternalFunction* function = find_external(label);
  if (function == nullptr) return bad_model("there is no external function '{}'", label);
  Program program;
  Stage stage;
  stage.name = "result";
  stage.is_result = true;
  stage.external.label = label;
  std::vector<TensorType> params;
  for (const Type& param : type.params()) {
    if (!param.is_tensor()) return bad_model("an external function takes tensors alone");
    params.push_back(param.tensor());
    program.buffers.push_back({"p" + std::to_string(params.size() - 1), params.back()});
    stage.external.inputs.push_back(program.buffers.back().name);
  }
  const TensorType result = TRY(function->type(params));
  stage.dtype = result.dtype;
  stage.axes = numbered_axes("i", result.shape);
  program.stages.push_back(std::move(stage));
  return program;
}

/// The function, and function literals inside, with calls of `programs` by operator.
Result<Function> linked(
    const Function& function,
    const std::map<std::string, std::shared_ptr<const AbstractFunction>>& programs) {
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    if (rebuilt->kind() == ExprKind::kFunction)
      return Expr(TRY(linked(std::static_pointer_cast<const FunctionNode>(rebuilt), programs)));
    const auto* call = as<CallNode>(rebuilt);
    const auto* global = call == nullptr ? nullptr : as<GlobalVarNode>(call->callee);
    if (global == nullptr) return rebuilt;
    const auto found = programs.find(global->name);
    if (found == programs.end()) return rebuilt;
    const auto* program = dynamic_cast<const ProgramFunction*>(found->second.get());
    if (program == nullptr) return rebuilt;
    return make_call(kCallOp, call->args, {{"program", program->program()}}, call->origin());
  });
  return rewriter.rewrite(function);
}

}  // namespace

void register_call_op() {
  OpDef op;
  op.name = kCallOp;
  op.min_args = 0;
  op.max_args = -1;
  op.attrs = {{"program", std::string(), true}};
  op.infer_type = infer_call;
  op.reference = run_call;
  op.flops = flops;
  register_op(std::move(op));
}

Result<Program> program_of_call(const CallNode& call) {
  if (call.op == nullptr || call.op->name != kCallOp)
    return unsupported("no call of a tensor program");
  return parse_program(call.attrs.string("program"));
}

std::map<std::string, Expr> arguments_of(const CallNode& call, const Program& program) {
  std::map<std::string, Expr> arguments;
  size_t next = 0;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.is_constant) arguments[buffer.name] = call.args[next++];
  return arguments;
}

Result<Expr> call_program(const Program& program, const std::map<std::string, Expr>& arguments,
                          const std::string& origin) {
  std::vector<Expr> args;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.is_constant) args.push_back(arguments.at(buffer.name));
  return make_call(kCallOp, std::move(args), {{"program", program.to_string()}}, origin);
}

Result<std::shared_ptr<const AbstractFunction>> abstract_function(const std::string& kind,
                                                                  const Type& type,
                                                                  const std::string& text) {
  Program program;
  if (kind == "tensor_program") {
    program = TRY(parse_program(text));
    TRY(check_callable(program));
  } else if (kind == "external") {
    program = TRY(external_program(text, type));
  } else {
    return unsupported("no kind of function '{}': expected tensor_program or external", kind);
  }
  if (!(type_of(program) == type))
    return bad_model("the function has type {}, not {}", type_of(program).to_string(),
                     type.to_string());
  return std::shared_ptr<const AbstractFunction>(
      std::make_shared<ProgramFunction>(kind, type, text, program));
}

Result<bool> link_programs(Module& module) {
  if (module.abstract_functions.empty()) return false;
  for (auto& [name, function] : module.functions)
    function = TRY(linked(function, module.abstract_functions));
  std::erase_if(module.abstract_functions, [](const auto& entry) {
    return dynamic_cast<const ProgramFunction*>(entry.second.get()) != nullptr;
  });
  return true;
}

}  // namespace collage::tensor_program
