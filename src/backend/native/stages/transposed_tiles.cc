#include "backend/native/stages/transposed_tiles.h"

#include <algorithm>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/stages/schedule_steps.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;
using tp::TermOp;

namespace {

/// Whether neighbours along the axis, which has that many, are neighbours in memory: the last index
/// is the axis, perhaps moved, and no other one; or the axis is cut into blocks that tiles divide.
bool lies_along(const Term& load, const tp::Axis& axis, int64_t tile) {
  const Term& last = load->args.back();
  const auto is_axis = [&](const Term& term) { return tp::is_variable(term, axis.name); };
  std::vector<Term> others(load->args.begin(), load->args.end() - 1);
  others.erase(std::remove_if(others.begin(), others.end(),
                              [&](const Term& t) { return !tp::depends_on(t, axis.name); }),
               others.end());
  if (last->op == TermOp::kModulo && is_axis(last->args[0])) {
    const std::optional<int64_t> block = tp::known_integer(last->args[1]);
    return block && *block % tile == 0 && axis.extent % tile == 0 && others.size() == 1 &&
           others[0]->op == TermOp::kDivide && is_axis(others[0]->args[0]) &&
           tp::known_integer(others[0]->args[1]) == block;
  }
  const bool moved =
      last->op == TermOp::kAdd && is_axis(last->args[0]) && tp::known_integer(last->args[1]);
  return others.empty() && (is_axis(last) || moved);
}

struct Tiles {
  size_t along = 0;  // the axis that the loads lie along
  std::vector<Term> loads;
};

/// The loads that are read across their rows by neighbours of the stage.
Tiles tiles_of(const Stage& stage, int64_t tile) {
  constexpr double kMostWaste = 2;
  constexpr size_t kMostLoads = 2;  // whose tiles are in registers side by side
  Tiles tiles;
  const tp::Axis& across = stage.axes.back();
  if (across.extent < tile) return tiles;
  for (const Term& load : tp::distinct_loads(stage.value)) {
    if (dtype_size(load.dtype()) != sizeof(float) || load->args.size() < 2 ||
        tiles.loads.size() == kMostLoads || tp::depends_on(load->args.back(), across.name) ||
        !tp::depends_on(load, across.name))
      continue;
    for (size_t d = 0; d + 1 < stage.axes.size(); ++d) {
      const tp::Axis& axis = stage.axes[d];
      if (axis.extent < tile || (!tiles.loads.empty() && d != tiles.along) ||
          in_tiles(axis.extent, tile) * in_tiles(across.extent, tile) > kMostWaste ||
          !lies_along(load, axis, tile))
        continue;
      tiles.along = d;
      tiles.loads.push_back(load);
      break;
    }
  }
  return tiles;
}

}  // namespace

bool schedule_transposed_tiles(tp::Program& program, const std::string& name, int threads,
                               std::optional<int64_t> tasks) {
  const auto position = std::find_if(program.stages.begin(), program.stages.end(),
                                     [&](const Stage& stage) { return stage.name == name; });
  Stage stage = *position;
  if (stage.axes.size() < 2 || dtype_size(stage.dtype) != sizeof(float)) return false;
  const int64_t tile = vector_width();
  const Tiles tiles = tiles_of(stage, tile);
  if (tiles.loads.empty()) return false;
  const tp::Axis along = stage.axes[tiles.along];
  std::vector<Stage> copies;
  for (const Term& load : tiles.loads) {
    Stage copy;
    copy.name = name + "_rows" + std::to_string(copies.size());
    copy.dtype = load.dtype();
    copy.axes = stage.axes;
    copy.axes.erase(copy.axes.begin() + static_cast<std::ptrdiff_t>(tiles.along));
    copy.axes.push_back(along);
    copy.value = load;
    stage.value = tp::rewrite(stage.value, [&](const Term& t) {
      return tp::same(t, load) ? tp::load(copy.name, copy.dtype, copy.indices()) : t;
    });
    copies.push_back(std::move(copy));
  }
  // Neighbours in memory of what is written and of what is read first.
  Names outer{"tile", "row_tile"};
  Extents outer_extents{ceil_div(stage.axes.back().extent, tile), ceil_div(along.extent, tile)};
  for (size_t d = stage.axes.size() - 1; d-- > 0;) {
    if (d == tiles.along) continue;
    outer.push_back(stage.axes[d].name);
    outer_extents.push_back(stage.axes[d].extent);
  }
  Steps steps(program, name);
  steps.split(stage.axes.back().name, "tile", "lane", tile);
  steps.split(along.name, "row_tile", "row", tile);
  Names order{"lane", "row"};
  order.insert(order.end(), outer.begin(), outer.end());
  steps.reorder(order);
  steps.vectorise("lane", tile);
  steps.unroll("row");
  std::string at = "tile";
  const bool divided = tasks ? *tasks > 0 : product(extents_of(stage)) >= kSerialElements;
  if (divided) {
    const FusedLoop loop = fuse_from(steps, outer, outer_extents, 0);
    at = split_tasks(steps, loop, threads, tasks.value_or(kTasksPerThread));
  }
  for (const Stage& copy : copies) {
    Steps rows(program, copy.name);
    rows.compute_at(name, at);
    rows.vectorise(along.name, tile);
    rows.unroll(copy.axes[copy.axes.size() - 2].name);
  }
  *position = std::move(stage);
  program.stages.insert(position, copies.begin(), copies.end());
  return true;
}

}  // namespace collage::native
