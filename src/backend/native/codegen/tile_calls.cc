#include "backend/native/codegen/tile_calls.h"

#include <fmt/format.h>

#include <map>

#include "base/check.h"
#include "base/integers.h"
#include "tensor_program/term_walk.h"

namespace collage::native {
namespace {

namespace ir = Halide::Internal;
namespace tp = tensor_program;

constexpr char kTile[] = "collage_tile";

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
    if (!op->name.ends_with(kTileLoop)) return ir::IRMutator::visit(op);
    return ir::For::make(op->name, op->min, 1, op->for_type, op->partition_policy, op->device_api,
                         mutate(op->body));
  }

  HExpr visit(const ir::Call* op) override {
    if (op->name != kTile) return ir::IRMutator::visit(op);
    std::vector<HExpr> args = {op->args[0]};
    HExpr places = Halide::cast<int64_t>(0);
    for (const size_t operand : {size_t{1}, size_t{2}, size_t{4}}) {
      HExpr value = op->args[operand];
      while (const auto* name = value.as<ir::Variable>()) {
        const auto let = lets_.find(name->name);
        if (let == lets_.end()) break;
        value = let->second;
      }
      const auto* load = value.as<ir::Load>();
      COLLAGE_CHECK(load != nullptr, "an operand of a tile that is not in memory");
      args.push_back(ir::Variable::make(Halide::Handle(), load->name));
      if (operand == 1) args.push_back(load->index);
      if (operand != 1) places = (places << 32) | Halide::cast<int64_t>(load->index);
    }
    args.push_back(places);
    const std::string hook = "collage_call_intrinsic_";
    return ir::Call::make(op->type, hook + (op->type.is_float() ? "float32" : "int32"), args,
                          ir::Call::Extern);
  }

 private:
  std::map<std::string, HExpr> lets_;  // names are unique
};

}  // namespace

HExpr tile_call(Translator& translator, const tp::Update& update, const tp::Primitive& step,
                const HExpr& sum, const Translator::Scope& scope) {
  const std::string &lane = step.names[0], &term = step.names[1];
  const int64_t terms = tp::find_intrinsic(step.names[2])->terms();
  std::vector<HExpr> args = {ir::StringImm::make(fmt::format("{} {}", step.number, step.names[2])),
                             sum};
  for (const bool own : {false, true})
    for (const tp::Term& load : tp::distinct_loads(update.value)) {
      if (!tp::depends_on(load, term) || tp::depends_on(load, lane) != own) continue;
      for (const int64_t at : {int64_t{0}, terms - 1}) {
        Translator::Scope here;
        here.variables = scope.variables;
        here.variables[term] = to_int(at);
        args.push_back(translator.expr(load, here));
      }
    }
  return ir::Call::make(sum.type(), kTile, args, ir::Call::Extern);
}

void call_tiles(Halide::Pipeline& pipeline) { pipeline.add_custom_lowering_pass(new TileCalls); }

}  // namespace collage::native
