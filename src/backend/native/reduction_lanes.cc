#include "backend/native/reduction_lanes.h"

#include <algorithm>

#include "backend/native/schedule_steps.h"
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

/// Of an array's elements along its innermost dimension.
Term pairwise(tp::Combine combine, std::vector<Term> terms) {
  while (terms.size() > 1) {
    const size_t half = terms.size() / 2;
    for (size_t i = 0; i < half; ++i) terms[i] = tp::combined(combine, terms[i], terms[i + half]);
    terms.resize(half);
  }
  return terms[0];
}

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
  parts.updates.clear();
  const auto add = [&](const Term& lane, const Term& at, const Term& loops, int64_t number) {
    tp::Update part = update;
    part.at.push_back(lane);
    part.over.back() = loop_of(along.name, loops, number);
    part.value = tp::substitute(update.value, {{along.name, at}});
    parts.updates.push_back(std::move(part));
  };
  if (along.size.defined() || along.extent >= lanes)
    add(var(kLane), walked * lanes + var(kLane), extent / lanes, along.extent / lanes);
  if (along.size.defined() || along.extent % lanes != 0)
    add(walked, extent / lanes * lanes + walked, extent % lanes, along.extent % lanes);

  const auto read = [&](const Stage& from, const Term& lane) {
    std::vector<Term> at = whole.indices();
    at.push_back(lane);
    return tp::load(from.name, from.dtype, std::move(at));
  };
  Stage vector = whole;
  vector.name = vector_of(name);
  vector.is_result = false;
  vector.axes.push_back({kLane, width});
  vector.updates.clear();
  std::vector<Term> terms;
  for (int i = 0; i < kVectors; ++i) terms.push_back(read(parts, var(kLane) + i * width));
  vector.value = pairwise(update.combine, terms);

  Stage total = whole;
  total.updates.clear();
  terms.clear();
  for (int i = 0; i < width; ++i) terms.push_back(read(vector, i));
  total.value = pairwise(update.combine, terms);

  *position = std::move(total);
  program.stages.insert(position, {std::move(parts), std::move(vector)});
}

void schedule_lanes(tp::Program& program, const std::string& stage, int width,
                    const std::string& reader, const std::string& loop) {
  const Stage parts = *program.find_stage(lanes_of(stage));
  const auto in_registers = [&](Steps& steps) {
    steps.vectorise(kLane, width);
    steps.unroll(kLane);
  };
  Steps start(program, parts.name);
  start.compute_at(reader, loop);
  in_registers(start);
  for (size_t i = 0; i < parts.updates.size(); ++i) {
    const tp::Update& update = parts.updates[i];
    Steps steps(program, parts.name, static_cast<int>(i));
    const std::string& along = update.over.back().name;
    if (update.at.back()->name == along) {
      steps.vectorise_masked(along, width);
      continue;
    }
    Names order{kLane};
    for (size_t k = update.over.size(); k-- > 0;) order.push_back(update.over[k].name);
    steps.reorder(std::move(order));
    in_registers(steps);
  }
  Steps vector(program, vector_of(stage));
  vector.compute_at(reader, loop);
  vector.vectorise(kLane, width);
  Steps(program, stage).compute_at(reader, loop);
}

}  // namespace collage::native
