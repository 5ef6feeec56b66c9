// Where weights serve several passes their next tile is prefetched, each line by one iteration.
#include "backend/native/codegen/weights_ahead.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace collage::native {
namespace {

using Halide::Var;
namespace ir = Halide::Internal;

/// The lines each prefetch asks for, loop variables by name.
class Prefetches : public ir::IRVisitor {
 public:
  using ir::IRVisitor::visit;
  void visit(const ir::Call* op) override {
    if (op->is_intrinsic(ir::Call::prefetch)) offsets.push_back(op->args[1]);
    ir::IRVisitor::visit(op);
  }
  void visit(const ir::For* op) override {
    loops.push_back(op->name);
    ir::IRVisitor::visit(op);
  }
  std::vector<Halide::Expr> offsets;
  std::vector<std::string> loops;
};

class Recorder : public ir::IRMutator {
 public:
  explicit Recorder(Prefetches* found) : found_(found) {}
  using ir::IRMutator::mutate;
  ir::Stmt mutate(const ir::Stmt& s) override {
    if (!seen_) {
      seen_ = true;
      s.accept(found_);
    }
    return s;
  }

 private:
  Prefetches* found_;
  bool seen_ = false;
};

/// out[column, row] = sum_k weights[column % 16, k, column / 16] * data[k, row]: panels of 16
/// columns around `rows` passes around 32 steps of k.
Prefetches prefetches_of_product(int rows, Halide::Type type = Halide::Float(32)) {
  Halide::ImageParam weights(type, 3, "weights"), data(type, 2, "data");
  weights.dim(0).set_bounds(0, 16).dim(1).set_bounds(0, 32).set_stride(16);
  weights.dim(2).set_bounds(0, 8).set_stride(16 * 32);
  data.dim(0).set_bounds(0, 32).dim(1).set_bounds(0, rows).set_stride(32);
  Var lane("lane"), row("row"), panel("panel");
  Halide::RDom k(0, 32, "k");
  Halide::Func sum("sum"), out("out");
  sum(lane, row, panel) += weights(lane, k, panel) * data(k, row);
  out(lane, row, panel) = sum(lane, row, panel);
  out.bound(lane, 0, 16).bound(row, 0, rows).bound(panel, 0, 8).vectorize(lane);
  sum.compute_at(out, row).vectorize(lane);
  sum.update().vectorize(lane);
  Halide::Pipeline pipeline(out);
  read_ahead(pipeline, weights.name());
  Prefetches found;
  pipeline.add_custom_lowering_pass(new Recorder(&found));
  pipeline.compile_to_module({weights, data}, "product");
  return found;
}

TEST(WeightsAhead, EveryLineOfTheNextTileOnce) {
  const Prefetches found = prefetches_of_product(4);
  ASSERT_EQ(found.offsets.size(), 1U);  // 128 iterations, 32 lines
  const int panel = 3;
  std::set<int64_t> lines;
  for (int row = 0; row < 4; ++row) {
    for (int k = 0; k < 32; ++k) {
      std::map<std::string, Halide::Expr> at;
      for (const std::string& loop : found.loops) {
        const bool last = loop.ends_with("row"), outer = loop.ends_with("panel");
        at[loop] = outer ? panel : last ? row : k;
      }
      const auto offset = ir::as_const_int(ir::simplify(ir::substitute(at, found.offsets[0])));
      ASSERT_TRUE(offset.has_value()) << found.offsets[0];
      lines.insert(*offset / 16);
    }
  }
  EXPECT_EQ(lines.size(), 32U);
  EXPECT_EQ(*lines.begin(), (panel + 1) * 32);
  EXPECT_EQ(*lines.rbegin(), (panel + 1) * 32 + 31);
}

TEST(WeightsAhead, LinesOfBytes) {
  const Prefetches found = prefetches_of_product(4, Halide::Int(8));
  ASSERT_EQ(found.offsets.size(), 1U);  // 128 iterations, 8 lines of 64
  std::map<std::string, Halide::Expr> last;
  for (const std::string& loop : found.loops)
    last[loop] = loop.ends_with("panel") ? 0 : loop.ends_with("row") ? 3 : 31;
  const auto offset = ir::as_const_int(ir::simplify(ir::substitute(last, found.offsets[0])));
  EXPECT_EQ(offset, 16 * 32 + 7 * 64);
}

TEST(WeightsAhead, NothingWhereWeightsServeOnePass) {
  EXPECT_TRUE(prefetches_of_product(1).offsets.empty());
}

}  // namespace
}  // namespace collage::native
