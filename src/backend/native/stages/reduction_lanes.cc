#include "backend/native/stages/reduction_lanes.h"

#include <algorithm>

#include "backend/native/stages/schedule_steps.h"
#include "tensor_program/simplify.h"
#include "tensor_program/symbols.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;
using tp::var;

namespace {

constexpr int kVectors = 4;
constexpr char kLane[] = "lane";

std::string lanes_of(const std::string& stage) { return stage + "_lanes"; }
std::string vector_of(const std::string& stage) { return stage + "_vector"; }

/// An extent that may be a number alone.
tp::Axis loop_of(const std::string& name, const Term& extent, int64_t number) {
  tp::Axis axis{name, number};
  if (!tp::known_integer(extent)) axis.size = extent;
  return axis;
}

}  // namespace

void split_into_lanes(tp::Program& program, const std::string& name, int width) {
  const auto position = std::find_if(program.stages.begin(), program.stages.end(),
                                     [&](const Stage& stage) { return stage.name == name; });
  const Stage whole = *position;
  const tp::Update& update = whole.updates[0];
  const tp::Axis along = update.over.back();
  const int lanes = width * kVectors;
  const Term extent = tp::extent_term(along.size, along.extent), walked = var(along.name);

  Stage parts = whole;
  parts.name = lanes_of(name);
  parts.is_result = false;
  parts.axes.push_back({kLane, lanes});
  Stage vector = parts;
  vector.name = vector_of(name);
  vector.axes.back().extent = width;
  const auto add = [&](Stage& to, const std::vector<Term>& lane, const Term& at,
                       const Term& loops) {
    const int64_t number = tp::value_of(loops, tp::values_of(program)).value_or(0);
    if (!along.size.defined() && number == 0) return;
    tp::Update part = update;
    part.at.insert(part.at.end(), lane.begin(), lane.end());
    part.over.back() = loop_of(along.name, loops, number);
    part.value = tp::substitute(update.value, {{along.name, at}});
    to.updates.push_back(std::move(part));
  };
  parts.updates.clear();
  vector.updates.clear();
  add(parts, {var(kLane)}, walked * lanes + var(kLane), extent / lanes);
  add(vector, {var(kLane)}, extent / lanes * lanes + walked * width + var(kLane),
      extent % lanes / width);
  // One more, where there is a vector and it does not end with one.
  const size_t whole_vectors = vector.updates.size();
  add(vector, {var(kLane)}, extent - width + var(kLane),
      tp::min(tp::min(extent % width, 1), extent / width));
  if (vector.updates.size() > whole_vectors) {
    Term& value = vector.updates.back().value;
    value = tp::select(var(kLane) >= width - extent % width, value,
                       tp::neutral(update.combine, whole.dtype));
  }
  const auto read = [&](const Stage& from, const Term& lane) {
    std::vector<Term> index = whole.indices();
    index.push_back(lane);
    return tp::load(from.name, from.dtype, std::move(index));
  };
  std::vector<Term> terms;
  for (int i = 0; i < kVectors; ++i) terms.push_back(read(parts, var(kLane) + i * width));
  const bool has_lanes = !parts.updates.empty();
  if (has_lanes) vector.value = tp::combined_pairwise(update.combine, terms);

  Stage total = whole;
  total.updates.clear();
  terms.clear();
  for (int i = 0; i < width; ++i) terms.push_back(read(vector, i));
  total.value = tp::combined_pairwise(update.combine, terms);
  // All of it where it is less than a vector: the factor is 0 otherwise, and 1 at least.
  add(total, {}, walked, tp::min(extent, Term(width) / (extent + 1) * width));

  *position = std::move(total);
  const auto before = program.stages.insert(position, std::move(vector));
  if (has_lanes) program.stages.insert(before, std::move(parts));
}

void schedule_lanes(tp::Program& program, const std::string& stage, int width,
                    const std::string& reader, const std::string& loop) {
  for (const std::string& name : {lanes_of(stage), vector_of(stage)}) {
    if (program.find_stage(name) == nullptr) continue;
    const Stage lanes = *program.find_stage(name);
    Steps start(program, name);
    start.compute_at(reader, loop);
    start.vectorise(kLane, width);
    start.unroll(kLane);
    for (size_t i = 0; i < lanes.updates.size(); ++i) {
      Steps steps(program, name, static_cast<int>(i));
      Names order{kLane};
      for (size_t k = lanes.updates[i].over.size(); k-- > 0;)
        order.push_back(lanes.updates[i].over[k].name);
      steps.reorder(std::move(order));
      steps.vectorise(kLane, width);
      steps.unroll(kLane);
    }
  }
  Steps(program, stage).compute_at(reader, loop);
}

}  // namespace collage::native
