#include "backend/opencl/gpu_schedule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tensor_program/pattern_kind.h"
#include "tensor_program/term_walk.h"

namespace collage::opencl {

namespace tp = tensor_program;
using Halide::Func;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

namespace {

constexpr int kLanesOfParts = 16;

/// Whether the term grows by one with the variable.
bool steps_with(const tp::Term& term, const std::string& name) {
  if (tp::is_variable(term, name)) return true;
  if (term->op != tp::TermOp::kAdd && term->op != tp::TermOp::kSubtract) return false;
  const tp::Term &a = term->args[0], &b = term->args[1];
  if (!tp::depends_on(b, name)) return steps_with(a, name);
  return term->op == tp::TermOp::kAdd && !tp::depends_on(a, name) && steps_with(b, name);
}

bool is_by_constant(const tp::Term& term, tp::TermOp op, const std::string& name, int64_t number) {
  return term->op == op && tp::is_variable(term->args[0], name) &&
         tp::known_integer(term->args[1]) == number;
}

/// Whether a tile's lanes are one column of a matrix that is packed in columns: indices n / lanes
/// and, last, n % lanes.
bool is_in_one_column(const tp::Term& load, const std::string& name, int lanes) {
  for (size_t d = 0; d < load->args.size(); ++d) {
    const tp::Term& index = load->args[d];
    const bool last = d + 1 == load->args.size();
    if (last ? !is_by_constant(index, tp::TermOp::kModulo, name, lanes)
             : tp::depends_on(index, name) &&
                   !is_by_constant(index, tp::TermOp::kDivide, name, lanes))
      return false;
  }
  return true;
}

/// Whether everything that the term reads lies side by side for the lanes of a tile along an axis,
/// or is the same for all of them.
bool reads_side_by_side(const tp::Term& term, const std::string& name, int lanes) {
  const std::vector<tp::Term> loads = tp::distinct_loads(term);
  return std::all_of(loads.begin(), loads.end(), [&](const tp::Term& load) {
    if (is_in_one_column(load, name, lanes)) return true;
    for (size_t d = 0; d < load->args.size(); ++d)
      if (tp::depends_on(load->args[d], name) &&
          (d + 1 != load->args.size() || !steps_with(load->args[d], name)))
        return false;
    return true;
  });
}

/// The axis, by its place from the innermost, along which a thread computes several points: one
/// along which it reads what it multiplies by lanes only once, or else something only once. 0:
/// none.
size_t axis_of_rows(const tp::Stage& stage) {
  std::vector<tp::Term> loads;
  for (const tp::Update& update : stage.updates)
    for (const tp::Term& load : tp::distinct_loads(update.value)) loads.push_back(load);
  const std::string& lanes = stage.axes.back().name;
  const auto find = [&](bool by_lanes) -> size_t {
    for (size_t place = 1; place < stage.axes.size(); ++place) {
      const tp::Axis& axis = stage.axes[stage.axes.size() - 1 - place];
      if (axis.extent == 1) continue;
      for (const tp::Term& load : loads)
        if (!tp::depends_on(load, axis.name) && (!by_lanes || tp::depends_on(load, lanes)))
          return place;
    }
    return 0;
  };
  const size_t place = find(true);
  return place != 0 ? place : find(false);
}

bool adds_up_at_own_indices(const tp::Stage& stage) {
  return stage.updates.size() == 1 && !stage.value.defined() &&
         stage.updates[0].combine != tp::Combine::kSet &&
         tp::writes_own_elements(stage, stage.updates[0]);
}

int power_of_two_within(int wanted, int64_t most) {
  while (wanted > 1 && wanted > most) wanted /= 2;
  return wanted;
}

/// Rows of a tile: as many as divide the extent, where that are nearly as many as wanted.
int rows_within(int wanted, int64_t most) {
  for (int rows = wanted; rows > wanted / 2; --rows)
    if (most % rows == 0) return rows;
  return power_of_two_within(wanted, most);
}

/// Those loops of a function, of which there is one at least, innermost first, as one.
Var fused(Func f, const std::vector<Var>& loops) {
  Var all = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    const Var next("fused" + std::to_string(i));
    f.fuse(all, loops[i], next);
    all = next;
  }
  return all;
}

bool is_long(const tp::Stage& part) { return !part.axes.empty() && part.axes.back().name == "u"; }

/// Spreads the points of those loops over threads; the loop over a group's threads.
Var spread(Func f, const std::vector<Var>& loops, int threads) {
  const Var block("block"), thread("thread");
  if (loops.empty()) {
    f.gpu_single_thread();
    return thread;
  }
  f.gpu_tile(fused(f, loops), block, thread, threads, TailStrategy::GuardWithIf);
  return thread;
}

class Scheduler {
 public:
  Scheduler(tp::Emitter& emitter, native::Translator& translator, const Tile& tile)
      : program_(emitter.program()), translator_(translator), tile_(tile) {
    for (const auto& stored : emitter.stored())
      for (const std::string& part : stored->parts) parts_[stored->total].push_back(part);
    for (const auto& [total, parts] : parts_) inside_.insert(parts.begin(), parts.end());
  }

  void run() {
    // A sum that one stage alone reads, at its own points, is computed by that stage.
    for (const tp::Stage& stage : program_.stages)
      if (const tp::Stage* reader = pointwise_reader(stage)) {
        sums_[reader->name] = &stage;
        inside_.insert(stage.name);
      }
    for (const tp::Stage& stage : program_.stages) {
      if (inside_.count(stage.name) != 0) continue;
      Func f = translator_.func(stage.name);
      if (const auto sum = sums_.find(stage.name); sum != sums_.end()) {
        if (!stage.is_result) f.compute_root();
        compute_in_registers(f, *sum->second, &stage);
      } else if (adds_up_at_own_indices(stage) && !stage.axes.empty()) {
        // Its values are stored by a copy, once they are complete.
        compute_in_registers(f.in().compute_root(), stage, nullptr);
      } else {
        if (!stage.is_result) f.compute_root();
        compute_plainly(f, stage);
      }
    }
  }

 private:
  /// The one stage that reads a sum, if it does so at its own points alone and computes no other.
  const tp::Stage* pointwise_reader(const tp::Stage& sum) const {
    if (!adds_up_at_own_indices(sum) || sum.is_result || sum.axes.empty() ||
        inside_.count(sum.name) != 0)
      return nullptr;
    const tp::Stage* reader = nullptr;
    for (const tp::Stage& stage : program_.stages) {
      const std::vector<std::string> names = tp::loaded_names(stage);
      if (std::find(names.begin(), names.end(), sum.name) == names.end()) continue;
      if (reader != nullptr || !stage.value.defined() || !stage.updates.empty() ||
          stage.shape() != sum.shape() || sums_.count(stage.name) != 0 ||
          parts_.count(stage.name) != 0)
        return nullptr;
      reader = &stage;
    }
    if (reader == nullptr) return nullptr;
    for (const tp::Term& load : tp::distinct_loads(reader->value)) {
      if (load->name != sum.name) continue;
      for (size_t d = 0; d < load->args.size(); ++d)
        if (!tp::is_variable(load->args[d], reader->axes[d].name) &&
            !(reader->axes[d].extent == 1 && tp::same(load->args[d], tp::Term(0))))
          return nullptr;
    }
    return reader;
  }

  /// `out`, which is `reader` or a copy, by tiles, each of a thread that adds up `sum` in registers
  /// first.
  void compute_in_registers(Func out, const tp::Stage& sum, const tp::Stage* reader) {
    Func f = translator_.func(sum.name);
    const std::vector<Var> loops = out.args(), own = f.args();
    const auto extent = [&](size_t place) { return sum.axes[sum.axes.size() - 1 - place].extent; };
    const size_t reuse = axis_of_rows(sum);
    const bool across = tile_.across && reuse != 0;
    const size_t lane_axis = across ? reuse : 0, row_axis = across ? 0 : reuse;
    const int lanes = power_of_two_within(tile_.lanes, extent(lane_axis));
    const int rows = reuse == 0 ? 1 : rows_within(tile_.rows, extent(row_axis));
    // Devices have vectors of neighbours alone; other lanes are computed one by one.
    const auto name_of = [&](const tp::Stage& stage) {
      return stage.axes[stage.axes.size() - 1 - lane_axis].name;
    };
    const bool sums_vectors = reads_side_by_side(sum.updates[0].value, name_of(sum), lanes);
    const bool vectors =
        sums_vectors && !across &&
        (reader == nullptr || reads_side_by_side(reader->value, name_of(*reader), lanes));
    const auto side_by_side = [&](auto of, const Var& loop, bool as_vectors) {
      if (as_vectors) {
        of.vectorize(loop);
      } else {
        of.unroll(loop);
      }
    };
    std::vector<Var> outer = loops;
    std::vector<VarOrRVar> order;
    const Var lane("lane"), row("row");
    if (lanes > 1) {
      outer[lane_axis] = Var("lanes");
      out.split(loops[lane_axis], outer[lane_axis], lane, lanes, TailStrategy::ShiftInwards);
      order.push_back(lane);
    }
    if (rows > 1) {
      outer[row_axis] = Var("rows");
      out.split(loops[row_axis], outer[row_axis], row, rows, TailStrategy::ShiftInwards);
      order.push_back(row);
    }
    for (const Var& loop : outer) order.push_back(loop);
    out.reorder(order);
    if (lanes > 1) side_by_side(out, lane, vectors);
    if (rows > 1) out.unroll(row);
    const Var thread = spread(out, outer, tile_.threads);
    f.compute_at(out, thread);
    auto update = f.update(0);
    order = {own[lane_axis]};
    if (rows > 1) order.push_back(own[row_axis]);
    for (const RVar& loop : f.rvars(0)) order.push_back(loop);
    for (size_t i = 0; i < own.size(); ++i)
      if (i != lane_axis && (rows <= 1 || i != row_axis)) order.push_back(own[i]);
    update.reorder(order);
    if (across) {
      std::vector<Var> stored = own;
      std::rotate(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(lane_axis),
                  stored.begin() + static_cast<std::ptrdiff_t>(lane_axis) + 1);
      f.reorder_storage(stored);
      f.reorder({own[lane_axis], own[row_axis]});
    }
    if (lanes > 1) {
      f.bound_extent(own[lane_axis], lanes);
      side_by_side(f, own[lane_axis], sums_vectors && (across || vectors));
      side_by_side(update, own[lane_axis], sums_vectors && (across || vectors));
    }
    if (rows > 1) {
      f.bound_extent(own[row_axis], rows).unroll(own[row_axis]);
      update.unroll(own[row_axis]);
    }
  }

  /// A row a work-group: each of its threads has a part of it, and the first one their results.
  void compute_by_groups(Func f, const std::vector<std::string>& parts) {
    const Var block = fused(f, f.args()), u("u");
    f.gpu_blocks(block);
    for (const std::string& name : parts) {
      Func part = translator_.func(name);
      part.compute_at(f, block).gpu_threads(u);
      std::vector<VarOrRVar> order;
      for (const RVar& loop : part.rvars(0)) order.push_back(loop);
      order.push_back(u);
      part.update(0).reorder(order).gpu_threads(u);
      for (int i = 1; i < part.num_update_definitions(); ++i) part.update(i).unscheduled();
    }
  }

  /// A point a thread, with its reductions inside.
  void compute_plainly(Func f, const tp::Stage& stage) {
    for (size_t u = 0; u < stage.updates.size(); ++u) f.update(static_cast<int>(u)).unscheduled();
    const auto parts = parts_.find(stage.name);
    if (tile_.group_a_row && parts != parts_.end() && !f.args().empty() &&
        std::all_of(parts->second.begin(), parts->second.end(),
                    [&](const std::string& name) { return is_long(*program_.find_stage(name)); }))
      return compute_by_groups(f, parts->second);
    const Var thread = spread(f, f.args(), tile_.threads);
    if (parts == parts_.end()) return;
    for (const std::string& name : parts->second) {
      Func part = translator_.func(name);
      if (f.args().empty()) {
        part.compute_root();
        part.gpu_single_thread();
      } else {
        part.compute_at(f, thread);
      }
      const tp::Stage& summed = *program_.find_stage(name);
      for (size_t u = 0; u < summed.updates.size(); ++u) {
        auto update = part.update(static_cast<int>(u));
        if (f.args().empty()) {
          update.gpu_single_thread();
        } else {
          update.unscheduled();
        }
      }
      if (!is_long(summed) || f.args().empty()) continue;
      // Partial sums side by side.
      const Var u("u");
      auto update = part.update(0);
      std::vector<VarOrRVar> order{u};
      for (const RVar& loop : part.rvars(0)) order.push_back(loop);
      update.reorder(order);
      if (summed.dtype != DType::kFloat32) continue;
      part.vectorize(u, kLanesOfParts).unroll(u);
      update.vectorize(u, kLanesOfParts).unroll(u);
    }
  }

  const tp::Program& program_;
  native::Translator& translator_;
  const Tile& tile_;
  std::map<std::string, std::vector<std::string>> parts_;  // of each total
  std::set<std::string> inside_;                           // stages that others compute
  std::map<std::string, const tp::Stage*> sums_;           // by who computes them
};

}  // namespace

std::string Tile::to_string() const {
  if (group_a_row) return "group a row";
  if (lanes * rows == 1) return "fused";
  return fmt::format("v{} r{} t{}{}", lanes, rows, threads, across ? " across" : "");
}

const std::vector<Tile>& plain_tiles() {
  static const std::vector<Tile> tiles{{}, {1, 1, 64, false, false, true}};
  return tiles;
}

bool has_long_rows(tp::Emitter& emitter) {
  const auto& stored = emitter.stored();
  return std::any_of(stored.begin(), stored.end(), [&](const auto& one) {
    return !one->parts.empty() && is_long(*emitter.program().find_stage(one->parts[0])) &&
           !emitter.program().find_stage(one->total)->axes.empty();
  });
}

const std::vector<Tile>& sum_tiles(bool on_cpu) {
  static const std::vector<Tile> processor{
      {8, 8, 16, true, true}, {8, 8, 16, true}, {16, 4, 16, true}};
  static const std::vector<Tile> graphics{{4, 4, 64}, {4, 8, 64}, {1, 4, 64}};
  return on_cpu ? processor : graphics;
}

void schedule(tp::Emitter& emitter, native::Translator& translator, const Tile& tile) {
  Scheduler(emitter, translator, tile).run();
}

}  // namespace collage::opencl
