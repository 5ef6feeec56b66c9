#include "backend/native/codegen/tile_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/integers.h"
#include "tensor_program/term_walk.h"

namespace collage::native {
namespace {

namespace ir = Halide::Internal;
namespace tp = tensor_program;

constexpr char kTile[] = "collage_tile", kLanes[] = "__tile", kRows[] = "__rows";

/// How far apart what two loads read lies.
HExpr apart(const HExpr& first, const HExpr& next) {
  return Halide::cast<int64_t>(next) - Halide::cast<int64_t>(first);
}

class TileCalls : public ir::IRMutator {
 protected:
  using ir::IRMutator::visit;

  ir::Stmt visit(const ir::LetStmt* op) override {
    lets_[op->name] = op->value;
    return ir::IRMutator::visit(op);
  }
  HExpr visit(const ir::Let* op) override {
    lets_[op->name] = op->value;
    return ir::IRMutator::visit(op);
  }

  ir::Stmt visit(const ir::For* op) override {
    const bool is_rows = op->name.ends_with(kRows);
    if (!is_rows && !op->name.ends_with(kLanes)) return ir::IRMutator::visit(op);
    if (is_rows) row_ = op->name;
    return ir::For::make(op->name, op->min, 1, op->for_type, op->partition_policy, op->device_api,
                         mutate(op->body));
  }

  HExpr visit(const ir::Call* op) override {
    if (op->name != kTile) return ir::IRMutator::visit(op);
    constexpr size_t kSums = 1, kOperands[] = {2, 5};  // of which each has three places
    const HExpr sums = index(op->args[kSums]);
    std::vector<HExpr> args = {op->args[0], array(op->args[kSums])},
                       places = {Halide::cast<int64_t>(sums)}, rows = {row_step(sums)};
    for (const size_t operand : kOperands) {
      const HExpr first = index(op->args[operand]);
      args.push_back(array(op->args[operand]));
      places.push_back(Halide::cast<int64_t>(first));
      rows.push_back(apart(first, index(op->args[operand + 1])));
    }
    places.insert(places.end(), rows.begin(), rows.end());
    args.push_back(ir::Call::make(Halide::type_of<int64_t*>(), ir::Call::make_struct, places,
                                  ir::Call::Intrinsic));
    const std::string hook = "collage_call_intrinsic_";
    return ir::Call::make(op->type, hook + (op->type.is_float() ? "float32" : "int32"), args,
                          ir::Call::Extern);
  }

 private:
  const ir::Load& load(HExpr value) const {
    while (const auto* name = value.as<ir::Variable>()) {
      const auto let = lets_.find(name->name);
      if (let == lets_.end()) break;
      value = let->second;
    }
    const auto* found = value.as<ir::Load>();
    COLLAGE_CHECK(found != nullptr, "an operand of a tile that is not in memory");
    return *found;
  }
  HExpr index(const HExpr& value) const { return load(value).index; }
  HExpr array(const HExpr& value) const {
    return ir::Variable::make(Halide::Handle(), load(value).name);
  }

  /// How far apart the rows of the sums lie.
  HExpr row_step(HExpr at) const {
    if (row_.empty()) return Halide::cast<int64_t>(0);
    for (HExpr before; !before.same_as(at);) {
      before = at;
      at = ir::substitute(lets_, at);
    }
    const HExpr row = ir::Variable::make(Halide::Int(32), row_);
    return ir::simplify(apart(at, ir::substitute(row_, row + 1, at)));
  }

  std::map<std::string, HExpr> lets_;  // names are unique
  std::string row_;                    // the innermost loop over rows, if any
};

}  // namespace

std::vector<std::pair<std::string, int>> tile_of(const tp::Primitive& step) {
  const Result<tp::Program> program = tp::program_for(*tp::find_intrinsic(step), step.number);
  COLLAGE_CHECK(program.ok(), "{}", program.status().to_string());  // the program was checked
  std::vector<std::pair<std::string, int>> tile;
  for (const tp::Axis& axis : program->stages[0].axes)
    tile.emplace_back(step.names[tile.size()], to_int(axis.extent));
  return tile;
}

std::string tile_loop(const tp::Primitive& step, const std::string& axis) {
  return axis + (tp::find_intrinsic(step)->is_tile() && axis == step.names[0] ? kRows : kLanes);
}

HExpr tile_call(Translator& translator, const tp::Program& program, const tp::Stage& stage,
                const tp::Primitive& step, const HExpr& sum, const Translator::Scope& scope) {
  const tp::Intrinsic& intrinsic = *tp::find_intrinsic(step);
  const auto tile = tile_of(step);
  std::vector<tp::Axis> loops = intrinsic.stage().axes;
  for (const tp::Axis& axis : intrinsic.update().over) loops.push_back(axis);
  std::vector<HExpr> args = {ir::StringImm::make(fmt::format("{} {}", step.number, intrinsic.name)),
                             sum};
  const auto operands = tp::match_tensorised(program, stage, step, intrinsic);
  COLLAGE_CHECK(operands.ok(), "{}", operands.status().to_string());  // the program was checked
  for (const auto& [operand, load] : *operands) {
    // Where all loops over terms are at their first, where the loop that selects the operand's rows
    // is one further, and where all are at their last.
    for (const int place : {0, 1, 2}) {
      Translator::Scope here;
      here.variables = scope.variables;
      for (size_t i = 0; i + 1 < step.names.size(); ++i) {
        const bool is_next = place == 1 && tp::is_variable(operand->args[0], loops[i].name);
        const std::string& name = step.names[i];
        if (i < tile.size()) {
          const int points = tile[i].second;
          if (is_next)
            here.variables[name] = Halide::Var(name) / points * points + std::min(points - 1, 1);
          continue;
        }
        const std::vector<tp::Axis>& over = stage.updates[static_cast<size_t>(step.update)].over;
        const int last =
            to_int(std::find_if(over.begin(), over.end(),
                                [&](const tp::Axis& axis) { return axis.name == name; })
                       ->extent) -
            1;
        here.variables[name] = place == 2 ? last : is_next ? std::min(last, 1) : 0;
      }
      args.push_back(translator.expr(load, here));
    }
  }
  return ir::Call::make(sum.type(), kTile, args, ir::Call::Extern);
}

void call_tiles(Halide::Pipeline& pipeline) { pipeline.add_custom_lowering_pass(new TileCalls); }

}  // namespace collage::native
