#include "tensor_program/call.h"

#include <algorithm>
#include <cstring>

#include "ir/op.h"
#include "ir/text_types.h"
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
Status check_callable(const Program& program, std::string* where) {
  for (const Buffer& buffer : program.buffers) {
    if (!buffer.is_constant || buffer.value.defined()) continue;
    if (where != nullptr) *where = buffer.name;
    return bad_model("the program's constant {} has no values", buffer.name);
  }
  return check_accesses(program, where);
}

Result<Type> infer_call(std::span<const Type> args, const Attrs& attrs) {
  const Program program = TRY(parse_program(attrs.string("program")));
  TRY(check_callable(program, nullptr));
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

/// The operator's attribute: all that the program is.
std::string text_of(const Program& program) {
  return "program {\n" + declarations_text(program) + "}\n";
}

class ProgramFunction : public AbstractFunction {
 public:
  /// `label`: of the external function that the program stands for; empty: none.
  ProgramFunction(Program program, std::string label)
      : type_(type_of(program)), label_(std::move(label)), program_(std::move(program)) {
    for (const Buffer& buffer : program_.buffers)
      if (!buffer.is_constant) scopes_.push_back(buffer.scope);
    for (const Stage& stage : program_.stages)
      if (stage.is_result) scopes_.push_back(stage.scope);
    if (std::all_of(scopes_.begin(), scopes_.end(), [](auto& scope) { return scope.empty(); }))
      scopes_.clear();
  }
  const Type& type() const override { return type_; }
  std::string to_text() const override {
    if (label_.empty()) return " {\n" + declarations_text(program_) + "}";
    std::string params;
    for (const Type& param : type_.params())
      params += (params.empty() ? "" : ", ") + param.to_string();
    return fmt::format("({}) = {};", params, attr_to_string(AttrValue(label_)));
  }
  std::string kind_name() const override { return label_.empty() ? "program" : "extern"; }
  std::vector<std::string> memory_scopes() const override { return scopes_; }
  const Program& program() const { return program_; }

 private:
  Type type_;
  std::string label_;
  Program program_;
  std::vector<std::string> scopes_;
};

/// One stage that calls the function of that label.
Result<Program> external_program(const std::string& label, const std::vector<Type>& params) {
  const ExternalFunction* function = find_external(label);
  if (function == nullptr) return bad_model("there is no external function '{}'", label);
  Program program;
  Stage stage;
  stage.name = "result";
  stage.is_result = true;
  stage.external.label = label;
  std::vector<TensorType> types;
  for (const Type& param : params) {
    if (!param.is_tensor()) return bad_model("an external function takes tensors alone");
    types.push_back(param.tensor());
    program.buffers.push_back({"p" + std::to_string(types.size() - 1), types.back()});
    stage.external.inputs.push_back(program.buffers.back().name);
  }
  const TensorType result = TRY(function->type(types));
  stage.dtype = result.dtype;
  stage.axes = numbered_axes("i", result.shape);
  program.stages.push_back(std::move(stage));
  return program;
}

/// (Tensor[(64, 128), float32], …) = "label";
Result<std::shared_ptr<const ProgramFunction>> read_external(TextReader& reader) {
  TRY(reader.expect("("));
  const std::vector<Type> params = TRY(reader.list(")", [&] { return parse_type(reader); }));
  TRY(reader.expect("="));
  const collage::Token label = reader.token();
  if (label.kind != collage::Token::Kind::kString)
    return reader.expected("the label of a function as a string");
  Program program = TRY(at(label, external_program(label.text, params)));
  TRY(at(label, verify(program)));
  TRY(reader.step());
  TRY(reader.expect(";"));
  return std::make_shared<const ProgramFunction>(std::move(program), label.text);
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
    return make_call(kCallOp, call->args, {{"program", text_of(program->program())}},
                     call->origin());
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

Result<std::shared_ptr<const AbstractFunction>> abstract_function(const std::string& kind,
                                                                  TextReader& reader) {
  using Function = std::shared_ptr<const AbstractFunction>;
  if (kind == "extern") return Function(TRY(read_external(reader)));
  const TextReader::Block block = TRY(reader.block());
  Program program = TRY(parse_declarations(block.text, {block.line, block.column}, check_callable));
  return Function(std::make_shared<const ProgramFunction>(std::move(program), ""));
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
