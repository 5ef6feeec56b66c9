#include "passes/lift_layouts.h"

#include <algorithm>
#include <set>

#include "passes/rewrite_rules.h"
#include "passes/stored_layouts.h"
#include "tensor_program/call.h"
#include "tensor_program/layout.h"
#include "tensor_program/transform.h"

namespace collage {

namespace {

using tensor_program::Buffer;
using tensor_program::kCallOp;
using tensor_program::Lifted;
using tensor_program::Program;
using tensor_program::Stage;

using Arguments = std::map<std::string, Expr>;
constexpr int kMostRounds = 4;
// Operations that computing a stage may take for each element that it reads or writes.
constexpr double kMostWork = 4;

bool is_program(const Expr& expr) { return as_op(expr, kCallOp) != nullptr; }

std::optional<Program> layout_of(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  return call == nullptr ? std::nullopt : tensor_program::layout_of(*call);
}

bool has_scoped_buffers(const Program& program) {
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [](const Buffer& buffer) { return !buffer.scope.empty(); });
}

// The stages that constant arguments decide.
std::set<std::string> constant_stages(const Program& program, const Arguments& arguments) {
  std::set<std::string> constant;  // buffers too
  std::set<std::string> of_arguments;
  for (const Buffer& buffer : program.buffers) {
    const auto argument = arguments.find(buffer.name);
    if (argument == arguments.end()) {
      constant.insert(buffer.name);
    } else if (as<ConstantNode>(argument->second) != nullptr) {
      constant.insert(buffer.name);
      of_arguments.insert(buffer.name);
    }
  }
  std::set<std::string> stages;
  for (const Stage& stage : program.stages) {
    const std::vector<std::string> read = loaded_names(stage);
    const auto in = [&](const std::set<std::string>& names) {
      return [&names](const std::string& name) { return names.count(name) != 0; };
    };
    if (!std::all_of(read.begin(), read.end(), in(constant))) continue;
    constant.insert(stage.name);
    if (!std::any_of(read.begin(), read.end(), in(of_arguments))) continue;
    of_arguments.insert(stage.name);
    if (!stage.is_result) stages.insert(stage.name);
  }
  return stages;
}

// Whether to compute the call of constants ahead.
bool worth_storing(const CallNode& call) {
  size_t read = 0;
  double elements = 0;
  const TensorType& result = call.tensor_type();
  std::vector<Type> types;
  for (const Expr& arg : call.args) {
    read += arg->tensor_type().bytes();
    elements += static_cast<double>(num_elements(arg->tensor_type().shape));
    types.push_back(arg->type());
  }
  elements += static_cast<double>(num_elements(result.shape));
  return result.bytes() <= kMostGrowthOfLayouts * read &&
         call.op->flops(types, call.attrs, call.type()) <= kMostWork * elements;
}

// A program's stages of constants become calls of their own, the last ones with what they read.
Result<Expr> stages_of_constants(const Expr& expr, const Uses&) {
  const auto* call = as<CallNode>(expr);
  Program program = TRY(tensor_program::program_of_call(*call));
  Arguments arguments = arguments_of(*call, program);
  if (has_scoped_buffers(program)) return Expr();
  Expr replacement;
  std::set<std::string> left = constant_stages(program, arguments);
  for (size_t i = program.stages.size(); i-- > 0;) {
    const std::string name = program.stages[i].name;
    if (left.erase(name) == 0) continue;
    Result<Lifted> lifted = lift_stage(program, name);
    if (!lifted) continue;
    Result<Expr> stage = call_program(lifted->stage, arguments, expr->origin());
    if (!stage || !worth_storing(*as<CallNode>(*stage))) continue;
    arguments[name] = *stage;
    Result<Expr> rest = call_program(lifted->rest, arguments, expr->origin());
    if (!rest) continue;
    replacement = *rest;
    program = std::move(lifted->rest);
    i = program.stages.size();
  }
  return replacement;
}

// Moves of elements within a program; not where a schedule says how they are made.
Result<Expr> moves_within(const Expr& expr, const Uses&) {
  const auto* call = as<CallNode>(expr);
  const Program program = TRY(tensor_program::program_of_call(*call));
  if (!program.schedule.empty()) return Expr();
  const Program less = cancel_layouts(program);
  if (equal(less, program)) return Expr();
  Result<Expr> made = call_program(less, arguments_of(*call, program), expr->origin());
  return made ? *made : Expr();
}

// layout(layout(x)) to one, where no other reads the inner one or a kernel is needed anyway; to x
// where they undo each other. A program that is a layout has the text that all such have.
Result<Expr> layouts(const Expr& expr, const Uses& uses) {
  const auto* call = as<CallNode>(expr);
  const Expr source = call->args.empty() ? nullptr : call->args[0];
  if (!is_program(expr) && !is_program(source)) return Expr();
  const std::optional<Program> outer = layout_of(expr);
  if (!outer) return Expr();
  const auto called = [&](const Program& layout, const Expr& of) {
    Result<Expr> made = call_program(layout, {{layout.buffers[0].name, of}}, expr->origin());
    return made ? *made : Expr();
  };
  if (is_identity(*outer)) return source;
  if (const std::optional<Program> inner = layout_of(source)) {
    const std::optional<Program> both = joined(*inner, *outer);
    const Expr& origin = as<CallNode>(source)->args[0];
    if (both && is_identity(*both)) return origin;
    if (both && (uses.once(source) || !call->op->is_view)) return called(*both, origin);
  }
  if (!is_program(expr) || call->attrs.string("program") == outer->to_string()) return Expr();
  return called(*outer, source);
}

// A program's stage that undoes the layout of what it reads takes what that layout reads.
Result<Expr> undone_arguments(const Expr& expr, const Uses&) {
  const auto* call = as<CallNode>(expr);
  const Program program = TRY(tensor_program::program_of_call(*call));
  Arguments arguments = arguments_of(*call, program);
  for (const Stage& stage : program.stages) {
    if (stage.is_result || !only_moves(stage)) continue;
    const auto argument = arguments.find(stage.value->name);
    if (argument == arguments.end()) continue;
    const std::optional<Program> inner = layout_of(argument->second);
    if (!inner || !cancel(*inner, layout_of(program, stage))) continue;
    if (!program.find_buffer(stage.value->name)->scope.empty()) continue;
    const Lifted lifted = TRY(lift_stage(program, stage.name));
    arguments[stage.name] = as<CallNode>(argument->second)->args[0];
    Result<Expr> made = call_program(lifted.rest, arguments, expr->origin());
    if (made) return *made;
    arguments.erase(stage.name);
  }
  return Expr();
}

const std::vector<RewriteRule> kLiftLayoutsRules = {
    {"stages of constants", {kCallOp}, stages_of_constants},
    {"moves within a program", {kCallOp}, moves_within},
    {"layouts",
     {kCallOp, "transpose", "reshape", "expand_dims", "squeeze", "nn.batch_flatten"},
     layouts},
    {"undone arguments", {kCallOp}, undone_arguments},
};

}  // namespace

Result<Function> lift_layouts(const Function& function) {
  Function current = function;
  for (int round = 0; round < kMostRounds; ++round) {
    current = TRY(apply_rules(current, kLiftLayoutsRules));
    Function next = TRY(take_out_stored_layouts(current));
    if (next == current) break;
    current = std::move(next);
  }
  return current;
}

}  // namespace collage
