#include "tensor_program/call.h"

#include <cstring>

#include "base/printable.h"
#include "ir/op.h"
#include "tensor_program/accesses.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/external_call.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

Result<Type> infer_call(std::span<const Type> args, const Attrs& attrs) {
  const Program program = TRY(parse_program(attrs.string("program")));
  TRY(check_callable(program));
  const Type type = function_type(program);
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

}  // namespace

Type function_type(const Program& program) {
  std::vector<Type> params, results;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.is_constant) params.emplace_back(buffer.type);
  for (const std::string& result : program.results()) results.emplace_back(program.type_of(result));
  return Type::function(std::move(params),
                        results.size() == 1 ? results[0] : Type::tuple(std::move(results)));
}

Status check_callable(const Program& program, std::string* where) {
  if (!program.symbols.empty()) return bad_model("a program over symbols cannot be called");
  for (const Buffer& buffer : program.buffers) {
    if (!buffer.is_constant || buffer.value.defined()) continue;
    if (where != nullptr) *where = buffer.name;
    return bad_model("the program's constant {} has no values", buffer.name);
  }
  return check_accesses(program, where);
}

void register_call_ops() {
  register_external_op();
  OpDef op;
  op.name = kCallOp;
  op.min_args = 0;
  op.max_args = -1;
  op.attrs = {{"program", std::string(), true}, {"name", std::string()}};
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

Attrs call_attrs(const Program& program, const std::string& name) {
  return {{"program", "program {\n" + declarations_text(program) + "}\n"}, {"name", name}};
}

Result<Expr> call_of_program(const Program& program, std::vector<Expr> args,
                             const std::string& name, const std::string& origin) {
  return make_call(kCallOp, std::move(args), call_attrs(program, name), origin);
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
  return call_of_program(program, std::move(args), "", origin);
}

std::string name_of_call(const CallNode& call) {
  if (const auto* function = as<FunctionNode>(call.callee)) {
    const AttrValue* symbol = function->attrs.find("global_symbol");
    const auto* name = symbol == nullptr ? nullptr : std::get_if<std::string>(symbol);
    return name == nullptr ? "call" : printable(*name);
  }
  if (call.op == nullptr) return "call";
  const bool is_named =
      call.op->name == kCallOp || call.op->name == kExternalOp || call.op->name == kExternalModOp;
  if (!is_named || call.attrs.string("name").empty()) return call.op->name;
  return printable(call.attrs.string("name"));
}

}  // namespace collage::tensor_program
