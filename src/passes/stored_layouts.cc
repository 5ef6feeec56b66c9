#include "passes/stored_layouts.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/visitor.h"
#include "tensor_program/call.h"
#include "tensor_program/layout.h"
#include "tensor_program/transform.h"

namespace collage {

namespace {

using tensor_program::Buffer;
using tensor_program::kCallOp;
using tensor_program::Lifted;
using tensor_program::Primitive;
using tensor_program::PrimitiveKind;
using tensor_program::Program;
using tensor_program::Stage;

constexpr int kMostMoves = 4;

// A stage of a called program that is a layout of one of the call's arguments; empty: the program
// itself is one.
struct Reading {
  const CallNode* call;
  std::string stage;
};

bool has_scopes(const Program& program) {
  const auto scoped = [](const auto& array) { return !array.scope.empty(); };
  return std::any_of(program.buffers.begin(), program.buffers.end(), scoped) ||
         std::any_of(program.stages.begin(), program.stages.end(), scoped);
}

bool is_stored(const Program& program, const std::string& name) {
  return std::any_of(program.schedule.begin(), program.schedule.end(),
                     [&](const Primitive& step) {
                       return step.stage == name && step.kind == PrimitiveKind::kComputeRoot;
                     }) ||
         std::any_of(program.stages.begin(), program.stages.end(), [&](const Stage& stage) {
           const auto& inputs = stage.external.inputs;
           return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
         });
}

class StoredLayouts {
 public:
  explicit StoredLayouts(const Function& function) : nodes_(post_order(function->body)) {
    for (const Expr& node : nodes_) {
      for (const Expr& input : expr_inputs(node)) readers_[input.get()].push_back(node);
      const CallNode* call = as_op(node, kCallOp);
      if (call == nullptr) continue;
      Result<Program> program = tensor_program::program_of_call(*call);
      if (program && !has_scopes(*program)) programs_[call] = std::move(program).value();
    }
    readers_[function->body.get()].push_back(nullptr);
  }

  void find() {
    if (programs_.empty()) return;
    for (const Expr& node : nodes_) {
      if (as<ConstantNode>(node) != nullptr || !node->type().is_tensor()) continue;
      find_undone(node);
      find_shared(node);
    }
  }

  Result<Expr> rewrite(const Expr& original, const Expr& rebuilt) const {
    const auto* before = as<CallNode>(original);
    const auto program = programs_.find(before);
    if (program == programs_.end()) return rebuilt;
    Expr result = rebuilt;
    if (const auto shared = shared_.find(before); shared != shared_.end())
      for (const std::string& stage : shared->second) result = TRY(without_stage(result, stage));
    if (undone_.count(before) != 0) result = TRY(without_result_layout(result));
    return result;
  }

 private:
  // Whether all that read the value undo the layout: at once, or by the last of moves of elements
  // that follow one another, `most` at most.
  bool all_undo(const Expr& value, const Program& layout, int most) const {
    const std::vector<Expr>& readers = readers_.at(value.get());
    return std::all_of(readers.begin(), readers.end(),
                       [&](const Expr& reader) { return undoes(reader, value, layout, most); });
  }

  bool undoes(const Expr& reader, const Expr& value, const Program& layout, int most) const {
    const auto* call = as<CallNode>(reader);
    if (call == nullptr) return false;
    if (const auto own = tensor_program::layout_of(*call)) {
      const std::optional<Program> both = joined(layout, *own);
      return both && (is_identity(*both) || (most > 1 && all_undo(reader, *both, most - 1)));
    }
    const auto program = programs_.find(call);
    if (program == programs_.end()) return false;
    for (const auto& [name, argument] : arguments_of(*call, program->second)) {
      if (argument != value) continue;
      for (const Stage& stage : program->second.stages) {
        const std::vector<std::string> read = loaded_names(stage);
        if (std::find(read.begin(), read.end(), name) == read.end()) continue;
        if (stage.is_result || !only_moves(stage) ||
            !cancel(layout, layout_of(program->second, stage)))
          return false;
      }
    }
    return true;
  }

  void find_undone(const Expr& value) {
    const auto program = programs_.find(as<CallNode>(value));
    if (program == programs_.end()) return;
    const Result<Lifted> lifted = lift_result(program->second, program->second.results()[0]);
    if (lifted && all_undo(value, lifted->stage, kMostMoves)) undone_.insert(program->first);
  }

  void find_shared(const Expr& value) {
    std::map<std::string, std::vector<Reading>> by_layout;
    std::set<const ExprNode*> seen;
    for (const Expr& reader : readers_[value.get()]) {
      const CallNode* call = as_op(reader, kCallOp);
      if (call == nullptr || !seen.insert(call).second) continue;
      if (const auto layout = tensor_program::layout_of(*call)) {
        by_layout[layout->to_string()].push_back({call, ""});
        continue;
      }
      const auto found = programs_.find(call);
      if (found == programs_.end()) continue;
      const Program& program = found->second;
      const std::map<std::string, Expr> arguments = arguments_of(*call, program);
      for (const Stage& stage : program.stages) {
        if (stage.is_result || !only_moves(stage) || !is_stored(program, stage.name)) continue;
        const auto argument = arguments.find(stage.value->name);
        if (argument == arguments.end() || argument->second != value) continue;
        by_layout[layout_of(program, stage).to_string()].push_back({call, stage.name});
      }
    }
    for (const auto& entry : by_layout) {
      const std::vector<Reading>& readings = entry.second;
      const bool others =
          std::any_of(readings.begin(), readings.end(),
                      [&](const Reading& reading) { return reading.call != readings[0].call; });
      if (!others) continue;
      for (const Reading& reading : readings)
        if (!reading.stage.empty()) shared_[reading.call].push_back(reading.stage);
    }
  }

  static Result<Expr> without_stage(const Expr& expr, const std::string& name) {
    const auto* call = as<CallNode>(expr);
    const Program program = TRY(tensor_program::program_of_call(*call));
    const Stage& stage = *program.find_stage(name);
    const Program layout = layout_of(program, stage);
    std::map<std::string, Expr> arguments = arguments_of(*call, program);
    const Lifted lifted = TRY(lift_stage(program, name));
    arguments[name] = TRY(call_program(
        layout, {{layout.buffers[0].name, arguments.at(stage.value->name)}}, expr->origin()));
    Result<Expr> made = call_program(lifted.rest, arguments, expr->origin());
    return made ? *made : expr;
  }

  static Result<Expr> without_result_layout(const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    const Program program = TRY(tensor_program::program_of_call(*call));
    const Lifted lifted = TRY(lift_result(program, program.results()[0]));
    Result<Expr> rest = call_program(lifted.rest, arguments_of(*call, program), expr->origin());
    if (!rest) return expr;
    return call_program(lifted.stage, {{lifted.stage.buffers[0].name, *rest}}, expr->origin());
  }

  std::vector<Expr> nodes_;
  std::unordered_map<const ExprNode*, std::vector<Expr>> readers_;
  std::unordered_map<const CallNode*, Program> programs_;
  std::set<const CallNode*> undone_;
  std::map<const CallNode*, std::vector<std::string>> shared_;
};

}  // namespace

Result<Function> take_out_stored_layouts(const Function& function) {
  StoredLayouts stored(function);
  stored.find();
  Rewriter rewriter(
      [&](const Expr& original, const Expr& rebuilt) { return stored.rewrite(original, rebuilt); });
  return rewriter.rewrite(function);
}

}  // namespace collage
