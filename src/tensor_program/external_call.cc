#include "tensor_program/external_call.h"

#include <algorithm>
#include <span>

#include "base/printable.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"

namespace collage::tensor_program {
namespace {

Result<const ExternalFunction*> require_external(const std::string& label) {
  const ExternalFunction* function = find_external(label);
  if (function == nullptr) return bad_model("there is no external function '{}'", printable(label));
  return function;
}

Result<std::vector<TensorType>> tensor_types(std::span<const Type> params) {
  std::vector<TensorType> types;
  for (const Type& param : params) {
    if (!param.is_tensor()) return bad_model("an external function takes tensors alone");
    types.push_back(param.tensor());
  }
  return types;
}

Result<std::vector<TensorType>> results_of(const std::string& label, std::span<const Type> params) {
  return result_types(*TRY(require_external(label)), TRY(tensor_types(params)));
}

Type type_of(const std::vector<TensorType>& results) {
  const std::vector<Type> types(results.begin(), results.end());
  return types.size() == 1 ? types[0] : Type::tuple(types);
}

Result<Type> infer(std::span<const Type> args, const Attrs& attrs) {
  return type_of(TRY(results_of(attrs.string("label"), args)));
}

std::vector<DLTensor> dl_tensors(std::span<const Tensor> tensors) {
  std::vector<DLTensor> views;
  for (const Tensor& tensor : tensors)
    views.push_back(dl_tensor(tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.raw())));
  return views;
}

Status run(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  return call_external(*TRY(require_external(attrs.string("label"))), dl_tensors(inputs),
                       dl_tensors(outputs));
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
  return function != nullptr && function->is_local;
}

}  // namespace

void register_external_op() {
  OpDef op;
  op.name = kExternalOp;
  op.min_args = 0;
  op.max_args = -1;
  op.attrs = {{"label", std::string(), true}, {"name", std::string()}};
  op.infer_type = infer;
  op.reference = run;
  op.flops = [](std::span<const Type>, const Attrs&, const Type&) { return 0.0; };  // unknown
  register_op(std::move(op));
}

Result<Type> external_type(const std::string& label, const std::vector<Type>& params) {
  return Type::function(params, type_of(TRY(results_of(label, params))));
}

Result<OperatorWithAttrs> external_operator(const std::string& label, const std::vector<Expr>& args,
                                            const std::string& name) {
  std::vector<Type> params;
  for (const Expr& arg : args) params.push_back(arg->type());
  const std::vector<TensorType> results = TRY(results_of(label, params));
  if (results.size() > 1) return OperatorWithAttrs{kExternalOp, {{"label", label}, {"name", name}}};
  const Program program = program_of(label, TRY(tensor_types(params)), results[0]);
  TRY(verify(program));
  return OperatorWithAttrs{kCallOp, call_attrs(program, name)};
}

std::string external_label(const CallNode& call) {
  if (call.op == nullptr) return "";
  if (call.op->name == kExternalOp) return call.attrs.string("label");
  const Result<Program> program = program_of_call(call);
  return program ? label_of(*program) : "";
}

bool is_local(const Function& function) {
  if (!has_local_functions()) return false;
  const Result<Function> flat = inline_calls(function);
  if (!flat) return false;
  const std::vector<Expr> order = post_order((*flat)->body);
  return std::any_of(order.begin(), order.end(), [](const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr) return false;
    if (call->op->name == kExternalOp) return is_local(call->attrs.string("label"));
    const Result<Program> program = program_of_call(*call);
    return program && std::any_of(program->stages.begin(), program->stages.end(),
                                  [](const Stage& s) { return is_local(s.external.label); });
  });
}

}  // namespace collage::tensor_program
