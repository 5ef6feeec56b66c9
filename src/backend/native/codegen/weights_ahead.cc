#include "backend/native/codegen/weights_ahead.h"

#include <optional>
#include <utility>
#include <vector>

#include "backend/native/codegen/halide_names.h"

namespace collage::native {
namespace {

namespace ir = Halide::Internal;
using ir::Stmt;

constexpr int kLineBytes = 64;
constexpr int kFraction = 256;  // prefetched lines an iteration are counted in such parts

class ReadAhead : public ir::IRMutator {
 public:
  explicit ReadAhead(std::string buffer) : buffer_(std::move(buffer)) {}

 protected:
  using ir::IRMutator::visit;

  Stmt visit(const ir::LetStmt* op) override {
    lets_.emplace_back(op->name, op->value);
    const Stmt body = mutate(op->body);
    lets_.pop_back();
    return ir::LetStmt::make(op->name, op->value, body);
  }

  HExpr visit(const ir::Let* op) override {
    const HExpr value = mutate(op->value);
    lets_.emplace_back(op->name, op->value);
    const HExpr body = mutate(op->body);
    lets_.pop_back();
    return ir::Let::make(op->name, value, body);
  }

  HExpr visit(const ir::Load* op) override {
    if (op->name == buffer_ && !index_.defined()) {
      HExpr first = op->index;
      while (const auto* ramp = first.as<ir::Ramp>()) first = ramp->base;
      if (first.type().is_scalar()) index_ = expanded(first);
      element_ = op->type.element_of();
    }
    return ir::IRMutator::visit(op);
  }

  Stmt visit(const ir::For* op) override {
    loops_.push_back(op);
    index_ = HExpr();
    Stmt body = mutate(op->body);
    // Inner loops have taken theirs: what is left was loaded in this very loop.
    if (const HExpr index = std::exchange(index_, HExpr()); index.defined()) {
      if (const Stmt ahead = prefetches(index); ahead.defined())
        body = ir::Block::make(ahead, body);
    }
    loops_.pop_back();
    return ir::For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy,
                         op->device_api, body);
  }

 private:
  /// In terms of loop variables alone.
  HExpr expanded(HExpr e) const {
    for (size_t i = lets_.size(); i-- > 0;) e = ir::substitute(lets_[i].first, lets_[i].second, e);
    return ir::simplify(e);
  }

  /// What to do in each iteration of the loops around this place; undefined where weights are not
  /// used again.
  Stmt prefetches(const HExpr& index) const {
    HExpr start = index, position = 0, iterations = 1;
    bool again = false;
    for (size_t i = loops_.size(); i-- > 0 && !loops_[i]->is_parallel();) {
      const ir::For& loop = *loops_[i];
      const HExpr var = ir::Variable::make(Halide::Int(32), loop.name);
      const auto step =
          ir::as_const_int(ir::simplify(ir::substitute(loop.name, var + 1, index) - index));
      if (!step) break;
      if (*step != 0 && again) return spread(start + to_int(*step), *step, position, iterations);
      again = again || (*step == 0 && !ir::is_const_one(loop.extent));
      position = position + (var - loop.min) * iterations;
      iterations = iterations * loop.extent;
      start = ir::substitute(loop.name, loop.min, start);
    }
    return {};
  }

  /// This iteration's part of the `elements` from `start` on.
  Stmt spread(const HExpr& start, int64_t elements, const HExpr& position,
              const HExpr& iterations) const {
    const int line = kLineBytes / element_.bytes();
    const HExpr most = ir::find_constant_bound(expanded(iterations), ir::Direction::Upper);
    const auto count = most.defined() ? ir::as_const_int(most) : std::nullopt;
    if (!count || *count <= 0 || elements < line) return {};
    const int64_t lines = ceil_div(elements, line);
    const int64_t rate = ceil_div(lines * kFraction, *count);  // lines an iteration
    const HExpr at_line = position * to_int(rate) / kFraction;
    std::vector<Stmt> found;
    for (int64_t i = 0; i < ceil_div(rate, kFraction); ++i) {
      const HExpr at = ir::simplify(start + (at_line + to_int(i)) * line);
      found.push_back(ir::Evaluate::make(ir::Call::make(
          element_, ir::Call::prefetch,
          {ir::Variable::make(Halide::Handle(), buffer_), at, 1, line}, ir::Call::Intrinsic)));
    }
    return ir::Block::make(found);
  }

  std::string buffer_;
  std::vector<std::pair<std::string, HExpr>> lets_;
  std::vector<const ir::For*> loops_;
  Halide::Type element_;
  HExpr index_;  ///< of a load of the buffer in the innermost loop, no prefetch there yet
};

}  // namespace

void read_ahead(Halide::Pipeline& pipeline, const std::string& buffer) {
  pipeline.add_custom_lowering_pass(new ReadAhead(buffer));
}

}  // namespace collage::native
