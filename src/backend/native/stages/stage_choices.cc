#include "backend/native/stages/stage_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

#include "backend/native/codegen/weights_ahead.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/stages/stage_rows.h"
#include "backend/native/stages/stage_tile.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;

namespace {

constexpr int64_t kCacheBytes = 256 << 10;  // what stays in L2 beside what passes

/// Rows of the result for a task: the best of those that are few and of those that are many, as far
/// as what a task computes stays in L2 and there are tasks enough.
std::vector<int64_t> block_sizes(const tp::StagePlan& plan, size_t depth, int threads) {
  constexpr int64_t kMany = 24, kMost = 96;
  const Stage& result = *result_of(plan.program);
  const int64_t extent = result.axes[depth - 1].extent;
  int64_t outer = 1, row_bytes = 0;
  for (size_t d = 0; d + 1 < depth; ++d) outer *= result.axes[d].extent;
  for (const auto& [name, same] : aligned_stages(plan, depth)) {
    int64_t elements = 1;
    const Stage& stage = *plan.program.find_stage(name);
    for (size_t d = depth; d < stage.axes.size(); ++d) elements *= stage.axes[d].extent;
    if (!plan.is_sum(name)) row_bytes += elements * static_cast<int64_t>(dtype_size(stage.dtype));
  }
  std::vector<int64_t> best;
  for (const auto& [least, most] : {std::pair(int64_t{1}, kMany - 1), std::pair(kMany, kMost)}) {
    int64_t found = 0;
    double lowest = 0;
    for (int64_t rows = least; rows <= std::min(most, extent); ++rows) {
      if (rows > 1 && (rows * row_bytes > kCacheBytes || outer * ceil_div(extent, rows) < threads))
        break;
      double cost = in_tiles(extent, rows) * (1 + 2 / static_cast<double>(rows));
      double sums = 0, tiles = 0;
      for (const tp::TiledSum& sum : plan.sums) {
        if (!sum.rows) continue;
        tiles += stage_tile(*sum.rows + 1 == depth ? rows : 1,
                            plan.program.find_stage(sum.consumer)->axes.back().extent,
                            plan.sums_of(sum.consumer).size(), false)
                     .cost;
        ++sums;
      }
      if (sums > 0) cost *= tiles / sums;
      if (found != 0 && cost >= lowest) continue;
      found = rows;
      lowest = cost;
    }
    if (found != 0) best.insert(best.begin(), found);
  }
  return best;
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failed == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value <= INT32_MAX ? std::optional(value) : std::nullopt;
}

/// The field of that name that is either said or not; null where it is none.
bool* flag_of(StageSchedule& schedule, std::string_view name) {
  return name == "packed"   ? &schedule.packed
         : name == "ahead"  ? &schedule.ahead
         : name == "scalar" ? &schedule.scalar
                            : nullptr;
}

/// Sets the field of that name, or says that there is none. Fields that may have no value have -1
/// for that.
bool set_field(StageSchedule& schedule, std::string_view name, int64_t value) {
  if (name == "tasks") {
    schedule.tasks = value < 0 ? std::nullopt : std::optional(value);
    return true;
  }
  int64_t* field = name == "rows"           ? &schedule.rows
                   : name == "vectors"      ? &schedule.vectors
                   : name == "lines"        ? &schedule.lines
                   : name == "steps"        ? &schedule.steps
                   : name == "tile rows"    ? &schedule.tile_rows
                   : name == "tile vectors" ? &schedule.tile_vectors
                   : name == "keep"         ? &schedule.keep
                                            : nullptr;
  bool* flag = flag_of(schedule, name);
  if (field != nullptr) *field = value;
  if (flag != nullptr) *flag = value != 0;
  return field != nullptr || flag != nullptr;
}

/// Whether compiled code can be made of it, of any program.
bool is_sound(const StageSchedule& s) {
  return s.vectors >= 1 && s.vectors <= 16 && s.lines >= 1 && s.lines <= 16 && s.steps <= 64 &&
         s.tile_rows <= 64 && s.tile_vectors <= 16;
}

}  // namespace

std::string StageSchedule::to_string() const {
  const StageSchedule usual;
  std::string text = rows > 0 ? fmt::format("rows {}", rows) : "stages";
  if (packed) text += " packed";
  if (!intrinsic.empty()) text += " " + intrinsic;
  if (vectors != usual.vectors) text += fmt::format(" vectors {}", vectors);
  if (lines != usual.lines) text += fmt::format(" lines {}", lines);
  if (tasks) text += fmt::format(" tasks {}", *tasks);
  if (steps != usual.steps) text += fmt::format(" steps {}", steps);
  if (tile_rows != 0 || tile_vectors != 0)
    text += fmt::format(" tile {}x{}", tile_rows, tile_vectors);
  if (ahead) text += " ahead";
  if (scalar) text += " scalar";
  if (keep != usual.keep) text += fmt::format(" keep {}", keep);
  return text;
}

std::optional<StageSchedule> parse_stage_schedule(std::string_view text) {
  StageSchedule schedule;
  std::istringstream stream{std::string(text)};
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  size_t at = !words.empty() && words[0] == "stages" ? 1 : 0;
  while (at < words.size()) {
    const std::string& name = words[at++];
    if (tp::find_intrinsic(name) != nullptr) {
      schedule.intrinsic = name;
      continue;
    }
    if (bool* flag = flag_of(schedule, name)) {
      *flag = true;
      continue;
    }
    if (at == words.size()) return std::nullopt;
    const std::string_view value = words[at++];
    if (name == "tile") {
      const size_t times = value.find('x');
      const auto rows = number_of(value.substr(0, times)),
                 vectors = number_of(times < value.size() ? value.substr(times + 1) : "");
      if (!rows || !vectors) return std::nullopt;
      schedule.tile_rows = *rows;
      schedule.tile_vectors = *vectors;
      continue;
    }
    const std::optional<int64_t> number = number_of(value);
    if (!number || !set_field(schedule, name, *number)) return std::nullopt;
  }
  // There is one text of each.
  return is_sound(schedule) && schedule.to_string() == text ? std::optional(schedule)
                                                            : std::nullopt;
}

std::vector<StageSchedule> stage_schedules(const tp::Program& program, int threads) {
  const tp::StagePlan plan = tp::plan_stages(program);
  bool products = false, heavy = false;
  for (const tp::TiledSum& tiled : plan.sums) {
    if (!tiled.rows) continue;
    products = true;
    const Stage& sum = *plan.program.find_stage(tiled.sum);
    int64_t bytes = sum.axes.back().extent * static_cast<int64_t>(dtype_size(sum.dtype));
    for (const tp::Axis& axis : sum.updates[0].over) bytes *= axis.extent;
    heavy = heavy || bytes > kCacheBytes;
  }
  std::vector<StageSchedule> stages(1);
  if (products) stages.insert(heavy ? stages.begin() : stages.end(), {.packed = true});
  const size_t depth = depth_of_rows(plan);
  // A block of rows is worth it where it keeps something between two stages.
  const size_t least = plan.sums.size() == 1 ? 3 : 2;
  if (depth == 0 || plan.program.stages.size() < least) return stages;
  std::vector<StageSchedule> blocks;
  for (const int64_t rows : block_sizes(plan, depth, threads)) {
    blocks.push_back({.rows = rows});
    if (products) blocks.push_back({.rows = rows, .packed = true});
  }
  // Each task would read all weights again.
  std::vector<StageSchedule>& first = heavy ? stages : blocks;
  const std::vector<StageSchedule>& second = heavy ? blocks : stages;
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Whether columns of that element type that serve many rows do not stay in a cache.
bool has_heavy_columns(const tp::StagePlan& plan, DType element) {
  constexpr int64_t kManyRows = 32;
  return std::any_of(plan.sums.begin(), plan.sums.end(), [&](const tp::TiledSum& tiled) {
    if (!tiled.rows) return false;
    const Stage& sum = *plan.program.find_stage(tiled.sum);
    int64_t bytes = sum.axes.back().extent * static_cast<int64_t>(dtype_size(element));
    for (const tp::Axis& axis : sum.updates[0].over) bytes *= axis.extent;
    return bytes >= kLeastBytesAhead && sum.axes[*tiled.rows].extent >= kManyRows;
  });
}

std::vector<StageSchedule> dot_schedules(const tp::Program& program, int threads) {
  std::vector<StageSchedule> schedules;
  const tp::StagePlan plan = tp::plan_stages(program);
  size_t element = 0;  // of the first that can be used: wider ones multiply fewer at a time
  for (const tp::Intrinsic* intrinsic : machine_intrinsics()) {
    const size_t own = dtype_size(intrinsic->lanes_dtype());
    if ((element != 0 && own > element) || !can_use_intrinsic(plan, *intrinsic)) continue;
    element = own;
    for (StageSchedule schedule : stage_schedules(program, threads)) {
      schedule.packed = false;  // it always is
      schedule.intrinsic = intrinsic->name;
      schedule.steps = 1;  // more would be added up before they are added to the sum
      if (std::find(schedules.begin(), schedules.end(), schedule) == schedules.end())
        schedules.push_back(std::move(schedule));
    }
    if (!has_heavy_columns(plan, intrinsic->lanes_dtype())) continue;
    StageSchedule ahead{.ahead = true, .intrinsic = intrinsic->name, .steps = 1};
    ahead.tasks = 1;  // in which as many panels as possible follow one another
    schedules.push_back(std::move(ahead));
  }
  return schedules;
}

std::vector<StageDecision> stage_decisions(const tp::Program& program) {
  const tp::StagePlan plan = tp::plan_stages(program);
  bool products = false, windows = false, element_wise = false;
  for (const tp::TiledSum& sum : plan.sums) {
    products = products || sum.rows.has_value();
    windows = windows || !sum.rows.has_value();
  }
  for (const Stage& stage : plan.program.stages)
    element_wise = element_wise || (stage.value.defined() && plan.sums_of(stage.name).empty());
  std::vector<StageDecision> decisions;
  if (const size_t depth = depth_of_rows(plan); depth > 0) {
    const int64_t extent = result_of(plan.program)->axes[depth - 1].extent;
    StageDecision rows{"rows", {0}};
    for (const int64_t n : {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96})
      if (n < extent) rows.options.push_back(n);
    if (extent <= 96) rows.options.push_back(extent);
    decisions.push_back(std::move(rows));
  }
  decisions.push_back({"tasks", {-1, 0, 1, 2, 4, 16, 32}});
  if (element_wise) decisions.push_back({"vectors", {1, 2, 4}});
  if (element_wise || windows) decisions.push_back({"lines", {1, 2, 4}});
  if (!plan.sums.empty()) {
    decisions.push_back({"steps", {4, 0, 1, 2, 8}});
    decisions.push_back({"tile vectors", {0, 1, 2, 3, 4, 8}});
    decisions.push_back({"scalar", {0, 1}});
  }
  if (products) {
    decisions.push_back({"tile rows", {0, 1, 2, 3, 4, 6, 8, 12}});
    decisions.push_back({"packed", {0, 1}});
  }
  if (program.stages.size() > 1) decisions.push_back({"keep", {tp::kKeeping, 1, 64}});
  return decisions;
}

StageSchedule decided_schedule(const std::vector<StageDecision>& decisions,
                               const std::vector<size_t>& choice) {
  StageSchedule schedule;
  for (size_t d = 0; d < decisions.size(); ++d)
    set_field(schedule, decisions[d].name, decisions[d].options[choice[d]]);
  return schedule;
}

std::optional<std::vector<size_t>> choice_of(const std::vector<StageDecision>& decisions,
                                             const StageSchedule& schedule) {
  std::vector<size_t> choice;
  for (size_t d = 0; d < decisions.size(); ++d) {
    const std::vector<int64_t>& options = decisions[d].options;
    const auto found = std::find_if(options.begin(), options.end(), [&](int64_t option) {
      StageSchedule same = schedule;
      set_field(same, decisions[d].name, option);
      return same == schedule;
    });
    if (found == options.end()) return std::nullopt;
    choice.push_back(static_cast<size_t>(found - options.begin()));
  }
  return decided_schedule(decisions, choice) == schedule ? std::optional(choice) : std::nullopt;
}

}  // namespace collage::native
