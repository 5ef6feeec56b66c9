#include "backend/native/stages/stage_schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/stages/scatter_schedule.h"
#include "backend/native/stages/schedule_steps.h"
#include "backend/native/stages/stage_rows.h"
#include "backend/native/stages/stage_tile.h"
#include "backend/native/stages/transposed_tiles.h"
#include "base/integers.h"
#include "tensor_program/term_walk.h"
#include "tensor_program/transform.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;

namespace {

constexpr int64_t kMostSteps = 64;  // of a sum that are written out where all are

/// Whether the index is the loop, or so much more.
bool starts_at_constant(const tp::Term& index, const std::string& loop) {
  return tp::is_variable(index, loop) ||
         (index->op == tp::TermOp::kAdd && tp::is_variable(index->args[0], loop) &&
          tp::known_integer(index->args[1]).has_value());
}

/// Writes the schedule of a plan.
class Scheduler {
 public:
  Scheduler(tp::StagePlan plan, const StageSchedule& schedule, int threads)
      : plan_(std::move(plan)), schedule_(schedule), threads_(threads) {}

  Result<tp::Program> run() {
    take_lines();
    // Stage by stage where the result has no rows.
    if (schedule_.rows > 0) depth_ = depth_of_rows(plan_);
    pack();
    if (!schedule_.intrinsic.empty() &&
        std::none_of(plan_.sums.begin(), plan_.sums.end(),
                     [](const tp::TiledSum& sum) { return sum.intrinsic != nullptr; }))
      return unsupported("native: no sum that {} computes", schedule_.intrinsic);
    if (depth_ > 0) {
      result_ = result_of(program())->name;
      aligned_ = aligned_stages(plan_, depth_);
    }
    // The result first: the others are computed at one of its loops.
    for (size_t i = program().stages.size(); i-- > 0;) {
      const Stage stage = program().stages[i];
      if (plan_.is_sum(stage.name)) continue;
      const auto part = std::find_if(plan_.parts.begin(), plan_.parts.end(),
                                     [&](const auto& p) { return p.first == stage.name; });
      if (part != plan_.parts.end()) {
        schedule_part(stage, part->second);
      } else {
        schedule_stage(stage);
      }
    }
    return std::move(program());
  }

 private:
  tp::Program& program() { return plan_.program; }
  int64_t tasks_per_thread() const { return schedule_.tasks.value_or(kTasksPerThread); }
  LoopSizes loop_sizes() const { return {schedule_.vectors, schedule_.lines, schedule_.tasks}; }

  bool is_in_block(const Stage& stage) const {
    return depth_ > 0 && aligned_.count(stage.name) != 0;
  }
  /// How far a loop over that axis of the stage runs in one task.
  int64_t extent_of(const Stage& stage, size_t axis) const {
    if (!is_in_block(stage) || axis >= depth_) return stage.axes[axis].extent;
    return axis + 1 == depth_ ? std::min(schedule_.rows, stage.axes[axis].extent) : 1;
  }

  /// That instructions multiply, of a term.
  int64_t products() const {
    const tp::Intrinsic* intrinsic = tp::find_intrinsic(schedule_.intrinsic);
    return intrinsic == nullptr ? 0 : static_cast<int64_t>(intrinsic->products());
  }

  StageTile tile_for(const Stage& consumer, const std::vector<const tp::TiledSum*>& sums) const {
    const size_t columns = consumer.axes.size() - 1;
    const int64_t rows = sums[0]->rows ? extent_of(consumer, *sums[0]->rows) : 1;
    const bool window = window_lines_.count(consumer.name) != 0;
    return stage_tile(rows, extent_of(consumer, columns), sums.size(), !is_in_block(consumer),
                      {window ? schedule_.lines : schedule_.tile_rows, schedule_.tile_vectors,
                       schedule_.scalar, products()});
  }

  /// Sums whose points share no factors, as those of windows: the loop next to the columns takes
  /// the place of the rows.
  void take_lines() {
    if (schedule_.lines == 1) return;
    for (tp::TiledSum& sum : plan_.sums) {
      const Stage& consumer = *program().find_stage(sum.consumer);
      if (sum.rows || consumer.axes.size() < 2) continue;
      sum.rows = consumer.axes.size() - 2;
      window_lines_.insert(consumer.name);
    }
  }

  void pack() {
    bool any = false;
    for (tp::TiledSum& sum : plan_.sums) {
      const Stage consumer = *program().find_stage(sum.consumer);
      if (!sum.rows || window_lines_.count(consumer.name) != 0) continue;
      const StageTile tile = tile_for(consumer, plan_.sums_of(sum.consumer));
      if (const tp::Intrinsic* intrinsic = tp::find_intrinsic(schedule_.intrinsic)) {
        any = use_intrinsic(plan_, sum, *intrinsic, tile.columns, tile.lanes) || any;
      } else if (consumer.axes[*sum.rows].extent >= 4 &&
                 consumer.axes.back().extent % tile.columns == 0) {
        any = tp::pack_columns(plan_, sum, tile.columns, schedule_.packed) || any;
      }
    }
    if (!any) return;
    // Copies of weights are made once, here.
    const Result<tp::Program> folded = tp::fold_constants(program());
    if (folded.ok() &&
        std::all_of(plan_.sums.begin(), plan_.sums.end(), [&](const tp::TiledSum& sum) {
          return folded->find_stage(sum.sum) != nullptr &&
                 folded->find_stage(sum.consumer) != nullptr;
        }))
      program() = *folded;
  }

  void schedule_stage(const Stage& stage) {
    const std::vector<const tp::TiledSum*> sums = plan_.sums_of(stage.name);
    Steps steps(program(), stage.name);
    if (is_in_block(stage)) {
      if (stage.name != result_) steps.compute_at(result_, block_loop_);
    } else if (!stage.is_result) {
      steps.compute_root();
    }
    if (stage.axes.empty()) return;
    if (!sums.empty()) {
      schedule_consumer(stage, sums);
    } else if (is_in_block(stage)) {
      schedule_in_block(stage);
    } else if (stage.value.defined()) {
      schedule_root(stage);
      for (size_t u = 0; u < stage.updates.size(); ++u)
        schedule_scatter(program(), stage, u, threads_);
    } else {
      for (size_t u = 0; u < stage.updates.size(); ++u) schedule_part_of_join(stage, u);
    }
  }

  /// An update that sets a part of the stage, which no other element is needed for: along one axis
  /// from a position on.
  void schedule_part_of_join(const Stage& stage, size_t number) {
    const tp::Update& update = stage.updates[number];
    const std::vector<tp::Term> loads = tp::distinct_loads(update.value);
    if (update.combine != tp::Combine::kSet || update.over.size() != 1 ||
        std::any_of(loads.begin(), loads.end(),
                    [&](const tp::Term& load) { return load->name == stage.name; }))
      return;
    Names order = loops_of(stage), others;
    Extents extents = extents_of(stage), other_extents;
    const tp::Axis& along = update.over[0];
    size_t place = order.size();
    for (size_t i = 0; i < order.size(); ++i) {
      const tp::Term& index = update.at[order.size() - 1 - i];
      if (tp::is_variable(index, order[i])) {
        others.push_back(order[i]);
        other_extents.push_back(extents[i]);
      } else if (place == order.size() && starts_at_constant(index, along.name)) {
        place = i;
      } else {
        return;
      }
    }
    if (place == order.size()) return;
    order[place] = along.name;
    extents[place] = along.extent;
    Steps steps(program(), stage.name, static_cast<int>(number));
    if (order.size() > 1) steps.reorder(order);
    steps.allow_races();
    const int width = vector_width_of(update.value, extents[0]);
    if (extents[0] >= width) steps.vectorise(order[0], width, true);
    if (schedule_.tasks ? *schedule_.tasks == 0 : product(extents) < kSerialElements) return;
    // A loop over positions alone is divided, or all other outer ones.
    if (place != 0 && along.extent >= 2) return steps.parallel(along.name);
    const FusedLoop loop = fuse_from(steps, others, other_extents, place == 0 ? 0 : 1);
    if (loop.any()) split_tasks(steps, loop, threads_, tasks_per_thread());
  }

  /// A stage by itself, without sums.
  void schedule_root(const Stage& stage) {
    Steps steps(program(), stage.name);
    const Names loops = loops_of(stage);
    const Extents extents = extents_of(stage);
    if (!plan_.reads_parts(stage)) {
      if (schedule_gather(program(), stage, threads_, schedule_.tasks)) return;
      const bool usual = schedule_.vectors == 1 && schedule_.lines == 1 && stage.updates.empty();
      if (!usual || !schedule_transposed_tiles(program(), stage.name, threads_, schedule_.tasks))
        schedule_loops(steps, loops, extents, stage.value, threads_, loop_sizes());
      return;
    }
    const FusedLoop loop = fuse_from(steps, loops, extents, loops.size() > 1 ? 1 : 0);
    if (loop.any() && loop.extent > 1 && schedule_.tasks != 0) steps.parallel(loop.name);
  }

  void schedule_in_block(const Stage& stage) {
    Steps steps(program(), stage.name);
    const Names loops = loops_of(stage);
    if (stage.name == result_) {
      Names order = loops;
      Extents extents = extents_of(stage);
      const size_t row = loops.size() - depth_;  // innermost first
      split_rows(steps, stage, order, extents, row);
      steps.reorder(order);
      if (!plan_.reads_parts(stage)) vectorise_innermost(steps, stage, order[0]);
      divide(steps, order, extents, row + 1);
      return;
    }
    if (!plan_.reads_parts(stage)) vectorise_innermost(steps, stage, loops[0]);
  }

  void vectorise_innermost(Steps& steps, const Stage& stage, const std::string& loop) {
    const int64_t extent = extent_of(stage, stage.axes.size() - 1);
    if (!stage.value.defined()) return;
    vectorise_by(steps, loop, extent, vector_width_of(stage.value, extent), schedule_.vectors);
  }

  /// Cuts the result's rows into blocks: the loop over rows within one, then that over blocks, are
  /// listed in the place of what was there.
  void split_rows(Steps& steps, const Stage& result, Names& loops, Extents& extents, size_t row) {
    const int64_t extent = result.axes[depth_ - 1].extent;
    const int64_t rows = std::min(schedule_.rows, extent);
    steps.split(loops[row], "block", "block_row", rows);
    extents[row] = ceil_div(extent, rows);
    loops[row] = "block";
    loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(row), "block_row");
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(row), rows);
  }

  /// Gives loops[first..] of the result to tasks.
  void divide(Steps& steps, const Names& loops, const Extents& extents, size_t first) {
    const FusedLoop loop = fuse_from(steps, loops, extents, first);
    block_loop_ = loop.extent > 1 && schedule_.tasks != 0
                      ? split_tasks(steps, loop, threads_, tasks_per_thread())
                      : loop.name;
  }

  /// The loops of a stage in whose tiles sums are computed.
  void schedule_consumer(const Stage& consumer, const std::vector<const tp::TiledSum*>& sums) {
    Steps steps(program(), consumer.name);
    const StageTile tile = tile_for(consumer, sums);
    const bool is_block = consumer.name == result_;
    Names loops = loops_of(consumer);
    Extents extents = extents_of(consumer);
    size_t outer = loops.size();  // loops from here on are tasks
    if (is_block) {
      const size_t row = loops.size() - depth_;
      split_rows(steps, consumer, loops, extents, row);
      outer = row + 1;
    }
    // Columns, then rows, then tiles of them, then what is left.
    Names inner{loops[0]}, tiles, rest;
    Extents rest_extents;
    std::vector<int64_t> tile_extents;
    if (tile.columns < extents[0]) {
      steps.split(loops[0], "column_tile", "column", tile.columns);
      inner[0] = "column";
      tiles.emplace_back("column_tile");
      tile_extents.push_back(ceil_div(extents[0], tile.columns));
    }
    size_t row = 0;  // which loop the rows are; 0, the columns: there are none
    if (sums[0]->rows) {
      // In the block the loop within it stands for the rows; beyond it there are none.
      row = consumer.axes.size() - 1 - *sums[0]->rows;
      if (is_block && row + 1 > outer) row = 0;
    }
    if (row > 0) {
      const int64_t extent =
          is_in_block(consumer) && !is_block ? extent_of(consumer, *sums[0]->rows) : extents[row];
      inner.push_back(loops[row]);
      if (tile.rows < extent) {
        steps.split(loops[row], "row_tile", "row", tile.rows);
        inner.back() = "row";
        tiles.insert(tiles.begin(), "row_tile");
        tile_extents.insert(tile_extents.begin(), ceil_div(extent, tile.rows));
      }
    }
    for (size_t i = 1; i < outer && i < loops.size(); ++i) {
      if (i == row) continue;
      rest.push_back(loops[i]);
      rest_extents.push_back(extents[i]);
    }
    Names order = inner;
    order.insert(order.end(), tiles.begin(), tiles.end());
    order.insert(order.end(), rest.begin(), rest.end());
    if (outer < loops.size())
      order.insert(order.end(), loops.begin() + static_cast<std::ptrdiff_t>(outer), loops.end());
    if (order.size() > 1) steps.reorder(order);
    if (tile.lanes > 1) steps.vectorise(inner[0], tile.lanes);
    if (tile.columns > tile.lanes) steps.unroll(inner[0]);
    if (inner.size() > 1) steps.unroll(inner[1]);

    std::string at = order.size() > inner.size() ? order[inner.size()] : "";
    if (is_block) {
      const Names tasks(loops.begin() + static_cast<std::ptrdiff_t>(outer), loops.end());
      const Extents task_extents(extents.begin() + static_cast<std::ptrdiff_t>(outer),
                                 extents.end());
      divide(steps, tasks, task_extents, 0);
      if (!tasks.empty() && at == tasks[0]) at = block_loop_;
    } else if (!is_in_block(consumer)) {
      // Tiles of one panel of columns follow one another in a task, where there are panels enough.
      tile_extents.insert(tile_extents.end(), rest_extents.begin(), rest_extents.end());
      Names tasks(order.begin() + static_cast<std::ptrdiff_t>(inner.size()), order.end());
      const bool serial = tasks.size() > 1 && product(tile_extents, 1) >= 4LL * threads_;
      const FusedLoop loop = fuse_from(steps, tasks, tile_extents, serial ? 1 : 0);
      if (loop.any()) {
        const bool divided =
            schedule_.tasks ? *schedule_.tasks > 0 : product(extents) >= kSerialElements / 8;
        const std::string inside = loop.extent > 1 && divided
                                       ? split_tasks(steps, loop, threads_, tasks_per_thread())
                                       : loop.name;
        if (!serial) at = inside;
      }
    }
    for (const tp::TiledSum* sum : sums) schedule_sum(*sum, consumer.name, at, tile, row > 0);
  }

  /// In registers, whole tiles at a time.
  void schedule_sum(const tp::TiledSum& tiled, const std::string& consumer, const std::string& at,
                    const StageTile& tile, bool has_rows) {
    const Stage stage = *program().find_stage(tiled.sum);
    Steps steps(program(), stage.name);
    if (at.empty() && depth_ > 0 && is_in_block(*program().find_stage(consumer))) {
      steps.compute_at(result_, block_loop_);  // the tile is all of the consumer in a block
    } else if (at.empty()) {
      steps.compute_root();
    } else {
      steps.compute_at(consumer, at);
    }
    const std::string column = stage.axes.back().name;
    const bool rows = has_rows && tiled.rows && tile.rows > 1;
    const std::string row = rows ? stage.axes[*tiled.rows].name : "";
    const auto unroll_tile = [&](Steps& s) {
      if (tile.columns > tile.lanes) s.unroll(column);
      if (rows) s.unroll(row);
    };
    if (tile.lanes > 1) steps.vectorise(column, tile.lanes);
    unroll_tile(steps);
    std::vector<tp::Axis> over = stage.updates[0].over;
    Steps sum(program(), stage.name, 0);
    Names loops{column};
    if (tiled.intrinsic != nullptr) {
      loops.insert(loops.begin(), over.back().name);
      over.pop_back();
    }
    if (rows) loops.push_back(row);
    const std::string& innermost = over.back().name;
    int64_t terms = 1;
    for (const tp::Axis& axis : over) terms *= axis.extent;
    const bool all = schedule_.steps == 0 && terms <= kMostSteps;
    const bool some = schedule_.steps > 1 && over.back().extent % schedule_.steps == 0;
    if (some) {
      sum.split(innermost, "sum_outer", "sum_inner", schedule_.steps);
      loops.insert(loops.end(), {"sum_inner", "sum_outer"});
    } else {
      loops.push_back(innermost);
    }
    for (size_t i = over.size() - 1; i-- > 0;) loops.push_back(over[i].name);
    sum.reorder(loops);
    if (tiled.intrinsic != nullptr) {
      sum.tensorise(column, loops[0], tiled.intrinsic->name, tile.lanes);
    } else if (tile.lanes > 1) {
      sum.vectorise(column, tile.lanes);
    }
    unroll_tile(sum);
    if (some) sum.unroll("sum_inner");
    for (const tp::Axis& axis : over)
      if (all) sum.unroll(axis.name);
  }

  /// Side by side for one point of its reader.
  void schedule_part(const Stage& stage, const std::string& reader) {
    Steps steps(program(), stage.name);
    const Stage& read_by = *program().find_stage(reader);
    if (read_by.axes.empty()) {
      steps.compute_root();
    } else {
      steps.compute_at(reader, read_by.axes.back().name);
    }
    const tp::Axis& lane = stage.axes.back();
    // Two short vectors at a time are computed side by side.
    const int width = std::max(vector_width(), 16);
    if (lane.extent % width != 0) return;
    for (int update = -1; update < static_cast<int>(stage.updates.size()); ++update) {
      Steps s(program(), stage.name, update);
      if (update >= 0) {
        const tp::Update& u = stage.updates[static_cast<size_t>(update)];
        if (!tp::is_variable(u.at.back(), lane.name)) continue;
        Names order{lane.name};
        for (size_t i = u.over.size(); i-- > 0;) order.push_back(u.over[i].name);
        s.reorder(order);
      }
      s.vectorise(lane.name, width);
      s.unroll(lane.name);
    }
  }

  tp::StagePlan plan_;
  StageSchedule schedule_;
  int threads_;
  size_t depth_ = 0;  // of the rows; 0 where tasks compute no rows
  std::string result_, block_loop_;
  std::map<std::string, bool> aligned_;
  std::set<std::string> window_lines_;  // consumers of sums that `take_lines` gave rows
};

}  // namespace

Result<tp::Program> with_schedule(tp::StagePlan plan, const StageSchedule& schedule, int threads) {
  return Scheduler(std::move(plan), schedule, threads).run();
}

}  // namespace collage::native
