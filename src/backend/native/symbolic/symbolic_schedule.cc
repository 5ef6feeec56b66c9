#include "backend/native/symbolic/symbolic_schedule.h"

#include <algorithm>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/stages/reduction_lanes.h"
#include "backend/native/stages/schedule_steps.h"
#include "backend/native/stages/stage_rows.h"
#include "tensor_program/program_text.h"
#include "tensor_program/symbols.h"
#include "tensor_program/term_walk.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;

namespace {

constexpr int kUnrolled = 4;  // vectors in an iteration
constexpr char kTask[] = "task", kInside[] = "inside";

bool has_updates(const Stage& stage) { return !stage.updates.empty(); }

class RowScheduler {
 public:
  RowScheduler(tp::Program program, int threads)
      : program_(std::move(program)),
        tasks_(static_cast<int>(kTasksPerThread) * threads),
        width_(vector_width()) {}

  Result<tp::Program> run() {
    const Stage* result = result_of(program_);
    if (result == nullptr) return unsupported("a program of several results over symbols");
    result_ = *result;
    TRY(check());
    elements_ = size(result_.axes, 0, result_.axes.size());
    if (result_.axes.size() == depth_) elements_ = elements_ * longest_reduction();
    std::vector<std::string> reductions, others;
    for (const Stage& stage : program_.stages)
      if (!stage.is_result) (has_updates(stage) ? reductions : others).push_back(stage.name);
    for (const std::string& name : reductions) split_into_lanes(program_, name, width_);
    schedule_result(!reductions.empty());
    for (const std::string& name : reductions)
      schedule_lanes(program_, name, width_, result_.name, kInside);
    for (const std::string& name : others) schedule_inside(*program_.find_stage(name));
    TRY(tp::verify(program_));
    return std::move(program_);
  }

 private:
  Status check() {
    const size_t rank = result_.axes.size();
    if (rank == 0 || has_updates(result_)) return unsupported("a result without rows");
    bool reduces = false;
    depth_ = rank - 1;
    for (const Stage& stage : program_.stages) {
      if (!has_updates(stage)) continue;
      depth_ = reduces ? std::max(depth_, stage.axes.size()) : stage.axes.size();
      reduces = true;
    }
    if (reduces && (depth_ == 0 || depth_ > rank)) return unsupported("a reduction of all rows");
    if (depth_ == 0 && program_.stages.size() > 1) return unsupported("stages without rows");
    for (const Stage& stage : program_.stages) TRY(check(stage).with_context(stage.name));
    for (const tp::Buffer& buffer : program_.buffers)
      if (dtype_size(buffer.type.dtype) != sizeof(float))
        return unsupported("rows of {} over symbols", dtype_name(buffer.type.dtype));
    return {};
  }

  Status check(const Stage& stage) const {
    for (size_t d = 0; d < depth_; ++d)
      if (d >= stage.axes.size() || !same_extent(stage.axes[d], result_.axes[d]))
        return unsupported("a stage of other rows than the result");
    if (dtype_size(stage.dtype) != sizeof(float))
      return unsupported("rows of {} over symbols", dtype_name(stage.dtype));
    if (!has_updates(stage)) {
      const bool has_row = stage.axes.size() > depth_;
      return check_loads(stage, stage.value, has_row ? stage.axes.back().name : "");
    }
    const bool one = stage.updates.size() == 1 && !stage.value.defined() &&
                     stage.updates[0].combine != tp::Combine::kSet &&
                     !stage.updates[0].over.empty() && stage.axes.size() == depth_;
    if (!one) return unsupported("a stage that is no single reduction of rows");
    for (size_t d = 0; d < depth_; ++d)
      if (!tp::is_variable(stage.updates[0].at[d], stage.axes[d].name))
        return unsupported("a stage that is no single reduction of rows");
    return check_loads(stage, stage.updates[0].value, stage.updates[0].over.back().name);
  }

  static bool same_extent(const tp::Axis& a, const tp::Axis& b) {
    return a.extent == b.extent && tp::same(a.size, b.size);
  }

  /// Stages are read in the same row, and along `vector` only as their innermost dimension, by no
  /// values of arrays.
  Status check_loads(const Stage& stage, const Term& root, const std::string& vector) const {
    for (const Term& load : tp::distinct_loads(root)) {
      const bool is_stage = program_.find_stage(load->name) != nullptr;
      for (size_t d = 0; d < load->args.size(); ++d) {
        const Term& index = load->args[d];
        if (!tp::distinct_loads(index).empty()) return unsupported("an index that is read");
        if (is_stage && d < depth_ && !tp::is_variable(index, stage.axes[d].name))
          return unsupported("{} is read in another row", load->name);
        const bool innermost = d + 1 == load->args.size() && tp::is_variable(index, vector);
        if (!vector.empty() && !innermost && tp::depends_on(index, vector))
          return unsupported("{} is not read along its rows", load->name);
      }
    }
    return {};
  }

  static Term size(const std::vector<tp::Axis>& axes, size_t first, size_t last) {
    Term product = 1;
    for (size_t d = first; d < last; ++d)
      product = product * tp::extent_term(axes[d].size, axes[d].extent);
    return product;
  }

  /// How many of `count` parts of the work a task gets; all of them where it has too few elements.
  Term per_task(const Term& count, int64_t least) const {
    const Term some = (count + (tasks_ - 1)) / tasks_;
    return tp::select(elements_ < static_cast<int>(least), count, some);
  }

  /// Loops over vectors of the axis.
  void vectorise(Steps& steps, const tp::Axis& axis, bool unrolled) const {
    const int64_t least = axis.size.defined() ? INT64_MAX : axis.extent;
    if (least < width_) return;
    if (axis.size.defined()) {
      steps.vectorise_masked(axis.name, width_);
    } else {
      steps.vectorise(axis.name, width_);
    }
    if (!unrolled || least < width_ * kUnrolled) return;
    steps.split(axis.name, axis.name + "_far", axis.name + "_near", kUnrolled, true);
    steps.unroll(axis.name + "_near");
  }

  void schedule_result(bool reduces) {
    Steps steps(program_, result_.name);
    const std::vector<tp::Axis>& axes = result_.axes;
    if (depth_ == 0) {
      // Vectors, some to a task.
      if (!axes[0].size.defined() && axes[0].extent < width_) return;
      steps.vectorise_masked(axes[0].name, width_);
      steps.split(axes[0].name, kTask, kInside,
                  per_task((elements_ + (width_ - 1)) / width_, 2 * kSerialElements));
      steps.parallel(kTask);
      return;
    }
    if (axes.size() > depth_) vectorise(steps, axes.back(), reduces);
    Names rows;
    for (size_t d = depth_; d-- > 0;) rows.push_back(axes[d].name);
    const FusedLoop row = fuse_from(steps, rows, Extents(rows.size(), 1), 0);
    steps.split(row.name, kTask, kInside,
                per_task(size(axes, 0, depth_), reduces ? kSerialElements / 4 : kSerialElements));
    steps.parallel(kTask);
  }

  /// Elements of a row, where the result has one of each.
  Term longest_reduction() const {
    Term longest = 1;
    for (const Stage& stage : program_.stages)
      for (const tp::Update& update : stage.updates)
        longest = tp::max(longest, size(update.over, 0, update.over.size()));
    return longest;
  }

  void schedule_inside(const Stage& stage) {
    Steps steps(program_, stage.name);
    steps.compute_at(result_.name, kInside);
    if (stage.axes.size() == depth_) return;
    const std::vector<tp::Axis>& axes = stage.axes;
    const bool fixed = std::all_of(axes.begin() + static_cast<std::ptrdiff_t>(depth_), axes.end(),
                                   [](const tp::Axis& axis) { return !axis.size.defined(); });
    // Of no size that is known: once for a task, not once for a row.
    if (!fixed) steps.hoist_storage(result_.name, kTask);
    vectorise(steps, axes.back(), true);
  }

  tp::Program program_;
  Stage result_;
  Term elements_;  // that there are to compute
  int tasks_, width_;
  size_t depth_ = 0;
};

}  // namespace

Result<tp::Program> scheduled_over_symbols(tp::Program program, int threads) {
  return RowScheduler(std::move(program), threads).run();
}

}  // namespace collage::native
