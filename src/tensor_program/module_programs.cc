#include "tensor_program/module_programs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/name_supply.h"
#include "ir/text_types.h"
#include "ir/visitor.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

class ProgramFunction : public AbstractFunction {
 public:
  /// `label`: of the external function that the program stands for; empty: none.
  ProgramFunction(Program program, std::string label)
      : type_(function_type(program)), label_(std::move(label)), program_(std::move(program)) {
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

/// The function, and function literals inside, with each call replaced by what the rule gives for
/// it.
using CallRule = std::function<Result<Expr>(const Expr& call)>;
Result<Function> with_calls(const Function& function, const CallRule& rule) {
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    if (rebuilt->kind() == ExprKind::kFunction)
      return Expr(TRY(with_calls(std::static_pointer_cast<const FunctionNode>(rebuilt), rule)));
    return rebuilt->kind() == ExprKind::kCall ? rule(rebuilt) : rebuilt;
  });
  return rewriter.rewrite(function);
}

/// The label where the program is nothing but a call of that function with its parameters in order.
std::string external_label(const Program& program) {
  if (program.stages.size() != 1 || !program.schedule.empty() || !program.stages[0].scope.empty())
    return "";
  std::vector<std::string> params;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.is_constant || !buffer.scope.empty()) return "";
    params.push_back(buffer.name);
  }
  const ExternalCall& external = program.stages[0].external;
  return external.inputs == params ? external.label : "";
}

}  // namespace

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
  const auto by_operator = [&](const Expr& expr) -> Result<Expr> {
    const auto* call = as<CallNode>(expr);
    const auto* global = as<GlobalVarNode>(call->callee);
    if (global == nullptr) return expr;
    const auto found = module.abstract_functions.find(global->name);
    if (found == module.abstract_functions.end()) return expr;
    const auto* function = dynamic_cast<const ProgramFunction*>(found->second.get());
    if (function == nullptr) return expr;
    return call_of_program(function->program(), call->args, global->name, call->origin());
  };
  for (auto& [name, function] : module.functions) function = TRY(with_calls(function, by_operator));
  std::erase_if(module.abstract_functions, [](const auto& entry) {
    return dynamic_cast<const ProgramFunction*>(entry.second.get()) != nullptr;
  });
  return true;
}

Result<Module> named_programs(const Module& module) {
  Module named = module;
  NameSupply names;
  for (const auto& [name, function] : module.functions) names.reserve(name);
  for (const auto& [name, function] : module.abstract_functions) names.reserve(name);
  std::map<std::pair<std::string, std::string>, Expr> known;  // by name and text
  size_t unnamed = 0;
  const auto by_name = [&](const Expr& expr) -> Result<Expr> {
    const auto* call = as_op(expr, kCallOp);
    if (call == nullptr) return expr;
    const std::string& wanted = call->attrs.string("name");
    Expr& global = known[{wanted, call->attrs.string("program")}];
    if (global == nullptr) {
      Program program = TRY(program_of_call(*call));
      std::string label = external_label(program);
      auto function = std::make_shared<const ProgramFunction>(std::move(program), std::move(label));
      const std::string name =
          names.fresh(wanted.empty() ? fmt::format("program{}", unnamed++) : wanted);
      global = make_global_var(name, function->type());
      named.abstract_functions[name] = std::move(function);
    }
    return make_function_call(global, call->args, expr->origin());
  };
  for (auto& [name, function] : named.functions) function = TRY(with_calls(function, by_name));
  return named;
}

}  // namespace collage::tensor_program
