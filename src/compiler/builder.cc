// Modules that are built statement by statement (collage/builder.h).
#include <collage/builder.h>

#include <algorithm>
#include <unordered_set>

#include "backend/targets/backends.h"
#include "base/name_supply.h"
#include "base/no_exceptions.h"
#include "compiler/attributes.h"
#include "compiler/model_stages.h"
#include "ir/effects.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/module_programs.h"
#include "tensor_program/program_text.h"

namespace collage {

namespace internal {

struct TensorProgramImpl {
  tensor_program::Program program;
};

struct ModuleBuilderImpl {
  struct Open {
    std::string name;
    std::vector<Expr> params;
    Attrs attrs;
    std::vector<Expr> calls = {};
    std::unordered_set<const ExprNode*> seen = {};  // of which calls are listed
    std::vector<Expr> kept = {};                    // so that no other node lies where one did
    bool is_dataflow = false;
  };
  Module module;
  CallsOfText calls;
  NameSupply names;
  std::optional<Open> open;

  /// Lists calls of the value that are not yet listed, arguments first.
  Status list_calls(const Expr& value) {
    open->kept.push_back(value);
    for (const Expr& expr : post_order(value)) {
      const auto* call = as<CallNode>(expr);
      if (call == nullptr || !open->seen.insert(expr.get()).second) continue;
      if (call->callee == nullptr && !has_effects(*call)) continue;
      const auto* global = as<GlobalVarNode>(call->callee);
      const auto found = global != nullptr ? module.abstract_functions.find(global->name)
                                           : module.abstract_functions.end();
      const bool has = found != module.abstract_functions.end() && found->second->has_effects();
      if (open->is_dataflow && (has || has_effects(*call)))
        return usage_error("a call with effects in a block of dataflow");
      open->calls.push_back(expr);
    }
    return {};
  }

  /// The name of a definition, which may be there already.
  Expr defined(const std::shared_ptr<const AbstractFunction>& function, const std::string& name) {
    for (const auto& [known, other] : module.abstract_functions)
      if (other->kind_name() == function->kind_name() && other->to_text() == function->to_text())
        return make_global_var(known, other->type());
    const std::string own = names.fresh(name);
    module.abstract_functions[own] = function;
    return make_global_var(own, function->type());
  }
};

}  // namespace internal

namespace {

TensorProgram made(tensor_program::Program program) {
  return TensorProgram(std::make_shared<const internal::TensorProgramImpl>(
      internal::TensorProgramImpl{std::move(program)}));
}

std::vector<Expr> nodes(const std::vector<Expression>& expressions) {
  std::vector<Expr> found;
  for (const Expression& expression : expressions) found.push_back(expression.node());
  return found;
}

Result<TensorProgram> emitted(const Function& function) {
  tensor_program::Program program = TRY(tensor_program::emit(function));
  for (const tensor_program::Buffer& buffer : program.buffers)
    if (!buffer.is_constant && buffer.param < 0)
      return internal_error("{} is no parameter", buffer.name);
  // All parameters are the program's, in their order, whether it reads them or not.
  std::vector<tensor_program::Buffer> params;
  for (size_t i = 0; i < function->params.size(); ++i) {
    const auto found = std::find_if(
        program.buffers.begin(), program.buffers.end(), [&](const tensor_program::Buffer& buffer) {
          return !buffer.is_constant && buffer.param == static_cast<int>(i);
        });
    params.push_back(
        found != program.buffers.end()
            ? *found
            : tensor_program::Buffer{"p" + std::to_string(i), function->params[i]->tensor_type()});
  }
  std::erase_if(program.buffers, [](const auto& buffer) { return !buffer.is_constant; });
  program.buffers.insert(program.buffers.begin(), params.begin(), params.end());
  TRY(tensor_program::check_callable(program));
  return made(std::move(program));
}

}  // namespace

Result<TensorProgram> TensorProgram::parse(const std::string& text) {
  return without_exceptions([&]() -> Result<TensorProgram> {
    register_all();
    tensor_program::Program program = TRY(tensor_program::parse_program(text));
    TRY(tensor_program::check_callable(program));
    return made(std::move(program));
  });
}

Result<TensorProgram> TensorProgram::emit(const std::string& op,
                                          const std::vector<ArrayType>& arguments,
                                          const Expression::Attributes& attributes) {
  std::vector<Expression> params;
  for (const ArrayType& type : arguments)
    params.push_back(
        TRY(Expression::parameter(fmt::format("p{}", params.size()), type.dtype, type.shape)));
  return emit(TRY(Expression::function(params, TRY(Expression::call(op, params, attributes)))));
}

Result<TensorProgram> TensorProgram::emit(const Expression& function) {
  if (function.kind() != Expression::Kind::kFunction)
    return usage_error("a program of a function, not of a {}", function.type());
  return without_exceptions(
      [&] { return emitted(std::static_pointer_cast<const FunctionNode>(function.node())); });
}

std::string TensorProgram::text() const {
  return "program {\n" + tensor_program::declarations_text(impl_->program) + "}\n";
}

std::vector<TensorInfo> TensorProgram::parameters() const {
  std::vector<TensorInfo> infos;
  for (const tensor_program::Buffer& buffer : impl_->program.buffers)
    if (!buffer.is_constant) infos.push_back({buffer.name, buffer.type.shape, buffer.type.dtype});
  return infos;
}

std::vector<TensorInfo> TensorProgram::results() const {
  std::vector<TensorInfo> infos;
  for (const std::string& name : impl_->program.results()) {
    const TensorType type = impl_->program.type_of(name);
    infos.push_back({name, type.shape, type.dtype});
  }
  return infos;
}

std::vector<std::string> TensorProgram::schedule() const {
  std::vector<std::string> steps;
  for (const tensor_program::Primitive& step : impl_->program.schedule)
    steps.push_back(tensor_program::primitive_text(step));
  return steps;
}

Result<TensorProgram> TensorProgram::scheduled(const std::vector<std::string>& steps) const {
  tensor_program::Program plain = impl_->program;
  plain.schedule.clear();
  std::string text = "program {\n" + tensor_program::declarations_text(plain);
  if (!steps.empty()) text += "  schedule {\n";
  for (const std::string& step : steps)
    text += "    " + step + (step.ends_with(";") ? "\n" : ";\n");
  return parse(text + (steps.empty() ? "}\n" : "  }\n}\n"));
}

ModuleBuilder::ModuleBuilder() : impl_(std::make_unique<internal::ModuleBuilderImpl>()) {}
ModuleBuilder::~ModuleBuilder() = default;
ModuleBuilder::ModuleBuilder(ModuleBuilder&&) noexcept = default;
ModuleBuilder& ModuleBuilder::operator=(ModuleBuilder&&) noexcept = default;

Status ModuleBuilder::begin(const std::string& name, const std::vector<Expression>& parameters,
                            const Expression::Attributes& attributes) {
  if (impl_->open) return usage_error("@{} has no output yet", impl_->open->name);
  if (name.empty() || impl_->module.has(name)) return usage_error("the name '{}' is taken", name);
  for (const Expression& parameter : parameters)
    if (parameter.kind() != Expression::Kind::kParameter)
      return usage_error("a parameter of @{} is none but a {}", name, parameter.type());
  impl_->names.reserve(name);
  impl_->open.emplace(
      internal::ModuleBuilderImpl::Open{name, nodes(parameters), attrs_of(attributes)});
  return {};
}

Status ModuleBuilder::begin_dataflow() {
  if (!impl_->open || impl_->open->is_dataflow)
    return usage_error("a block of dataflow stands in a function, and in no other block");
  impl_->open->is_dataflow = true;
  return {};
}

Status ModuleBuilder::end_dataflow() {
  if (!impl_->open || !impl_->open->is_dataflow) return usage_error("no block of dataflow is open");
  impl_->open->is_dataflow = false;
  return {};
}

Result<Expression> ModuleBuilder::emit(const Expression& value) {
  if (!impl_->open) return usage_error("no function is open");
  TRY(impl_->list_calls(value.node()));
  return value;
}

Result<Expression> ModuleBuilder::emit_te(const TensorProgram& program,
                                          const std::vector<Expression>& arguments,
                                          const std::string& name) {
  const Expr global =
      impl_->defined(tensor_program::program_function(program.impl().program), name);
  return emit(TRY(Expression::call(Expression(global), arguments)));
}

Result<Expression> ModuleBuilder::emit_te(const std::string& op,
                                          const std::vector<Expression>& arguments,
                                          const Expression::Attributes& attributes) {
  std::vector<ArrayType> types;
  for (const Expression& argument : arguments) {
    const std::vector<TensorInfo> tensors = argument.tensors();
    if (!argument.node()->type().is_tensor())
      return usage_error("{}: programs take tensors, not a {}", op, argument.type());
    types.push_back({tensors[0].shape, tensors[0].dtype});
  }
  return emit_te(TRY(TensorProgram::emit(op, types, attributes)), arguments, op);
}

Result<Expression> ModuleBuilder::emit_packed(const std::string& label,
                                              const std::vector<Expression>& arguments,
                                              const Expression::Attributes& attributes,
                                              const std::vector<ArrayType>& results) {
  return without_exceptions([&]() -> Result<Expression> {
    register_all();
    tensor_program::ExternalDeclaration declaration;
    declaration.label = label;
    for (const Expression& argument : arguments)
      declaration.params.push_back(argument.node()->type());
    TRY(tensor_program::take_declared(attrs_of(attributes), declaration));
    std::vector<Type> types;
    for (const ArrayType& type : results) types.emplace_back(TensorType{type.shape, type.dtype});
    if (types.size() == 1) declaration.result = types[0];
    if (types.size() > 1) declaration.result = Type::tuple(std::move(types));
    const Expr global =
        impl_->defined(TRY(tensor_program::external_function(std::move(declaration))), label);
    return emit(TRY(Expression::call(Expression(global), arguments)));
  });
}

Result<Expression> ModuleBuilder::output(const Expression& result) {
  TRY(emit(result));
  if (impl_->open->is_dataflow) return usage_error("a block of dataflow is open");
  const Function function = make_function(impl_->open->params, result.node(), impl_->open->attrs);
  const std::string name = impl_->open->name;
  impl_->module.functions[name] = function;
  impl_->calls[function] = std::move(impl_->open->calls);
  impl_->open.reset();
  return Expression(make_global_var(name, function->type()));
}

Result<Model> ModuleBuilder::model() const {
  if (impl_->open) return usage_error("@{} has no output yet", impl_->open->name);
  return without_exceptions([&]() -> Result<Model> {
    Module module = impl_->module;
    TRY(order_effects(module, impl_->calls));
    Model model =
        TRY(staged_model(Model(std::make_shared<internal::ModelImpl>()), std::move(module)));
    TRY(verify_model(model));
    return model;
  });
}

}  // namespace collage
