#include "tensor_program/external_call.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "base/hash.h"
#include "base/printable.h"
#include "ir/effects.h"
#include "ir/op.h"
#include "ir/text_types.h"
#include "ir/visitor.h"
#include "ops/control.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"
#include "tensor_program/intrinsic.h"

namespace collage::tensor_program {
namespace {

Result<std::vector<TensorType>> tensor_types(std::span<const Type> params) {
  std::vector<TensorType> types;
  for (const Type& param : params) {
    if (!param.is_tensor()) return bad_model("an external function takes tensors alone");
    types.push_back(param.tensor());
  }
  return types;
}

constexpr const char *kLabel = "label", *kName = "name", *kOrdered = "ordered";

Result<std::vector<TensorType>> results_of(const std::string& label, std::span<const Type> params,
                                           const Attrs& attrs) {
  return result_types(*TRY(require_external(label)), TRY(tensor_types(params)), attrs);
}

Type type_of(const std::vector<TensorType>& results) {
  const std::vector<Type> types(results.begin(), results.end());
  return types.size() == 1 ? types[0] : Type::tuple(types);
}

/// Those that the function declares.
Attrs own_attrs(const Attrs& all) {
  Attrs own;
  for (const auto& [name, value] : all.entries())
    if (name != kLabel && name != kName && name != kOrdered && name != kEffectsAttr)
      own.set(name, value);
  return own;
}

/// Without what the call comes after.
template <typename Value>
Result<std::span<const Value>> own_args(std::span<const Value> args, const Attrs& attrs) {
  if (!attrs.flag(kOrdered)) return args;
  if (args.size() < 2)
    return bad_model("the last argument, of two or more, is what it comes after");
  return args.first(args.size() - 1);
}

Result<Type> infer(std::span<const Type> args, const Attrs& attrs) {
  return type_of(
      TRY(results_of(attrs.string(kLabel), TRY(own_args(args, attrs)), own_attrs(attrs))));
}

std::vector<DLTensor> dl_tensors(std::span<const Tensor> tensors) {
  std::vector<DLTensor> views;
  for (const Tensor& tensor : tensors)
    views.push_back(dl_tensor(tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.raw())));
  return views;
}

Status run(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  return call_external(*TRY(require_external(attrs.string(kLabel))),
                       dl_tensors(TRY(own_args(inputs, attrs))), dl_tensors(outputs),
                       own_attrs(attrs));
}

std::vector<size_t> updates_of(const Attrs& attrs) {
  const ExternalFunction* function = find_external(attrs.string(kLabel));
  return function != nullptr ? function->updates : std::vector<size_t>();
}

/// One stage that calls the function of that label.
Program program_of(const std::string& label, const std::vector<TensorType>& params,
                   const TensorType& result) {
  Program program;
  Stage stage;
  stage.name = "result";
  stage.is_result = true;
  stage.external.label = label;
  for (const TensorType& param : params) {
    program.buffers.push_back({"p" + std::to_string(program.buffers.size()), param});
    stage.external.inputs.push_back(program.buffers.back().name);
  }
  stage.dtype = result.dtype;
  stage.axes = numbered_axes("i", result.shape);
  program.stages.push_back(std::move(stage));
  return program;
}

std::string label_of(const Program& program) {
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

bool is_local(const std::string& label) {
  const ExternalFunction* function = find_external(label);
  return function != nullptr && (function->is_local || function->has_effects);
}

constexpr const char *kSymbol = "symbol", *kModTarget = "target", *kModVariant = "variant",
                     *kModResult = "result", *kModHash = "sha256";

std::atomic<RunExternalMod> runner{nullptr};

Result<Type> infer_external_mod(std::span<const Type> args, const Attrs& attrs) {
  if (!args.back().is_tensor() || args.back().tensor().dtype != DType::kUInt8 ||
      args.back().tensor().shape.size() != 1)
    return bad_model("the last argument is the module's code, a Tensor[(n), uint8]");
  for (const Type& arg : args)
    if (!arg.is_tensor()) return bad_model("an external module takes tensors alone");
  TextReader reader(attrs.string(kModResult));
  TRY(reader.step());
  Type result = TRY(parse_type(reader));
  if (!reader.is(Token::Kind::kEnd) || result.is_function())
    return bad_model("'{}' is no type of a result", printable(attrs.string(kModResult)));
  return result;
}

Status run_external_mod(std::span<const Tensor> inputs, const Attrs& attrs,
                        std::span<Tensor> outputs) {
  const RunExternalMod run = runner;
  if (run == nullptr) return unsupported("external modules do not run here");
  return run(inputs.back(), inputs.first(inputs.size() - 1), outputs)
      .with_context("external module " + printable(attrs.string(kSymbol)));
}

void register_external_mod_op() {
  OpDef op;
  op.name = kExternalModOp;
  op.min_args = 1;
  op.max_args = -1;
  op.attrs = {{kName, std::string()},      {kSymbol, std::string(), true},
              {kModTarget, std::string()}, {kModVariant, std::string()},
              {kModHash, std::string()},   {kModResult, std::string(), true}};
  op.infer_type = infer_external_mod;
  op.reference = run_external_mod;
  op.flops = [](std::span<const Type>, const Attrs&, const Type&) { return 0.0; };  // unknown
  register_op(std::move(op));
}

/// after(x, y): a view of x that waits for y; nothing is fused over it.
void register_after_op() {
  OpDef op;
  op.name = kAfterOp;
  op.min_args = op.max_args = 2;
  op.is_view = true;
  op.infer_type = [](std::span<const Type> args, const Attrs&) -> Result<Type> {
    if (!args[0].is_tensor() || !args[1].is_tensor()) return bad_model("takes two tensors");
    return args[0];
  };
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    if (inputs[0].bytes() > 0) std::memcpy(outputs[0].raw(), inputs[0].raw(), inputs[0].bytes());
    return Status();
  };
  op.flops = [](std::span<const Type>, const Attrs&, const Type&) { return 0.0; };
  register_op(std::move(op));
}

}  // namespace

void register_external_op() {
  register_after_op();
  register_external_mod_op();
  OpDef op;
  op.name = kExternalOp;
  op.min_args = 0;
  op.max_args = -1;
  op.attrs = {{kLabel, std::string(), true},
              {kName, std::string()},
              {kEffectsAttr, false},
              {kOrdered, false}};
  op.has_open_attrs = true;
  op.updates = updates_of;
  op.infer_type = infer;
  op.reference = run;
  op.flops = [](std::span<const Type>, const Attrs&, const Type&) { return 0.0; };  // unknown
  register_op(std::move(op));
}

Result<Type> external_type(const ExternalDeclaration& declaration) {
  const auto& [label, params, result, attrs, updates, has_effects] = declaration;
  return Type::function(params, result ? *result : type_of(TRY(results_of(label, params, attrs))));
}

Result<OperatorWithAttrs> external_operator(const ExternalDeclaration& declaration,
                                            std::vector<Expr> args, const std::string& name) {
  const std::string& label = declaration.label;
  const ExternalFunction& function = *TRY(require_external(label));
  std::vector<Type> params;
  for (const Expr& arg : args) params.push_back(arg->type());
  const std::vector<TensorType> results = TRY(results_of(label, params, declaration.attrs));
  if (function.has_effects && !declaration.has_effects)
    return bad_model("{} has effects, and is declared without {}=1", label, kEffectsAttr);
  if (!declaration.updates.empty() &&
      !std::equal(function.updates.begin(), function.updates.end(), declaration.updates.begin(),
                  declaration.updates.end(),
                  [](size_t has, int64_t stated) { return static_cast<int64_t>(has) == stated; }))
    return bad_model("{} updates other arguments than it is declared to", label);
  if (results.size() > 1 || !declaration.attrs.empty() || declaration.has_effects) {
    Attrs attrs = declaration.attrs;
    attrs.set(kLabel, label).set(kName, name).set(kEffectsAttr, declaration.has_effects);
    const CallNode* after =
        declaration.has_effects && !args.empty() ? as_op(args[0], kAfterOp) : nullptr;
    if (after != nullptr) {
      args.push_back(after->args[1]);
      args[0] = Expr(after->args[0]);
      attrs.set(kOrdered, true);
    }
    return OperatorWithAttrs{kExternalOp, std::move(args), std::move(attrs)};
  }
  const Program program = program_of(label, TRY(tensor_types(params)), results[0]);
  TRY(verify(program));
  return OperatorWithAttrs{kCallOp, std::move(args), call_attrs(program, name)};
}

Result<std::optional<DeclaredCall>> declared_call(const CallNode& call) {
  DeclaredCall made{{}, call.args};
  ExternalDeclaration& declaration = made.declaration;
  if (call.op != nullptr && call.op->name == kExternalOp) {
    declaration.label = call.attrs.string(kLabel);
    declaration.attrs = own_attrs(call.attrs);
    declaration.has_effects = has_effects(call);
    if (call.attrs.flag(kOrdered)) {
      made.args.pop_back();
      made.args[0] = TRY(make_call(kAfterOp, {made.args[0], call.args.back()}, {}));
    }
  } else if (const Result<Program> program = program_of_call(call)) {
    declaration.label = label_of(*program);
  }
  if (declaration.label.empty()) return std::optional<DeclaredCall>();
  for (const Expr& arg : made.args) declaration.params.push_back(arg->type());
  declaration.result = call.type();
  return std::optional(std::move(made));
}

void set_external_mod_runner(RunExternalMod run) { runner = run; }

Result<Expr> make_external_mod_call(ExternalModCall call, const std::string& origin) {
  TRY(check_external_mod(call.mod));
  const Tensor& code = as<ConstantNode>(call.mod.code)->value;
  // What texts of calls, which leave the code out, are told apart by.
  const std::string hash = sha256_hex({static_cast<const char*>(code.raw()), code.bytes()});
  Attrs attrs{{kName, call.name},
              {kSymbol, call.symbol},
              {kModTarget, call.mod.target},
              {kModVariant, call.mod.variant},
              {kModHash, hash},
              {kModResult, call.result.to_string()}};
  call.args.push_back(call.mod.code);
  return make_call(kExternalModOp, std::move(call.args), std::move(attrs), origin);
}

std::optional<ExternalModCall> external_mod_call(const CallNode& call) {
  if (call.op == nullptr || call.op->name != kExternalModOp) return std::nullopt;
  return ExternalModCall{
      call.attrs.string(kSymbol),
      {call.attrs.string(kModTarget), call.attrs.string(kModVariant), call.args.back()},
      {call.args.begin(), call.args.end() - 1},
      call.type(),
      call.attrs.string(kName)};
}

bool runs_plans(const Function& function) {
  return is_control_flow(function) || as_op(function->body, kExternalModOp) != nullptr;
}

bool is_local(const Function& function) {
  if (runs_plans(function)) return true;
  if (!has_local_functions() && !has_local_intrinsics()) return false;
  const Result<Function> flat = inline_calls(function);
  if (!flat) return false;
  const std::vector<Expr> order = post_order((*flat)->body);
  return std::any_of(order.begin(), order.end(), [](const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr) return false;
    if (call->op->name == kExternalOp)
      return has_effects(*call) || is_local(call->attrs.string(kLabel));
    const Result<Program> program = program_of_call(*call);
    if (!program) return false;
    return uses_local_intrinsic(*program) ||
           std::any_of(program->stages.begin(), program->stages.end(),
                       [](const Stage& s) { return is_local(s.external.label); });
  });
}

}  // namespace collage::tensor_program
