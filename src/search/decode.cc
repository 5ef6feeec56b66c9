#include "search/decode.h"

#include <algorithm>

#include "search/order.h"

namespace collage::search {

namespace {

constexpr double kTolerance = 1e-6;  // of the linear program's values

class Decoder {
 public:
  explicit Decoder(const CompactProblem& compact)
      : compact_(compact), masks_(compact.groups.size(), 0) {
    for (size_t g = 0; g < masks_.size(); ++g)
      if (compact_.groups[g].root < 0) masks_[g] = 1;
  }

  void apply(uint32_t c, std::span<const Detour> detours) {
    const Column& column = compact_.columns[c];
    make(detours, false);
    for (const Use& use : column.inputs) make(use.group, use.form);
    cover_.kernels.push_back(column.choices[0]);
    cover_.seconds += column.cost;
    for (const Use& use : column.outputs) masks_[use.group] |= 1u << use.form;
    make(detours, true);
    for (const Use& use : column.outputs)
      if (compact_.groups[use.group].is_result) make(use.group, 0);
  }

  Cover take() { return std::move(cover_); }

 private:
  void make(std::span<const Detour> detours, bool output) {
    make_detours(
        detours, (1u << detours.size()) - 1, output, compact_,
        [&](uint32_t g) { return masks_[g]; },
        [&](const Detour& detour) {
          make(detour.group, detour.via);
          return true;
        });
  }

  void make(uint32_t g, uint32_t form) {
    const double cost =
        make_form(compact_.groups[g], masks_[g], form,
                  [&](uint32_t from, uint32_t to) { convert(compact_.groups[g], from, to); });
    if (cost == kInfinity) cover_.seconds = kInfinity;
  }

  void convert(const Group& group, uint32_t from, uint32_t to) {
    const SearchProblem& problem = *compact_.problem;
    ChosenConversion conversion;
    conversion.tensor = converted_tensor(group.forms[from], group.forms[to]);
    const TensorType type =
        problem.graph->node(conversion.tensor.node).expr->type().leaves()[conversion.tensor.leaf];
    conversion.from = group.forms[from].encoding;
    conversion.to = group.forms[to].encoding;
    conversion.seconds = problem.conversion_cost(type, conversion.from, conversion.to);
    conversion.before = cover_.kernels.size();
    cover_.seconds += conversion.seconds + problem.launch_penalty;
    cover_.conversions.push_back(std::move(conversion));
  }

  const CompactProblem& compact_;
  std::vector<FormMask> masks_;  // by group: the forms that exist
  Cover cover_;
};

}  // namespace

Cover decode(const CompactProblem& compact, std::span<const Step> steps) {
  Decoder decoder(compact);
  for (const Step& step : steps) decoder.apply(step.column, step.detours);
  return decoder.take();
}

std::optional<Cover> decode_solution(const CompactProblem& compact,
                                     const std::vector<uint32_t>& order,
                                     std::span<const double> solution) {
  constexpr uint32_t kNone = ~uint32_t{0};
  std::vector<std::vector<uint32_t>> chosen;
  std::vector<uint32_t> column_of(compact.nodes.size(), kNone);
  for (uint32_t c = 0; c < compact.columns.size(); ++c) {
    if (solution[c] < kTolerance) continue;
    if (solution[c] < 1 - kTolerance) return std::nullopt;
    chosen.push_back(compact.columns[c].nodes);
    for (uint32_t node : chosen.back()) {
      if (column_of[node] != kNone) return std::nullopt;
      column_of[node] = c;
    }
  }
  if (std::count(column_of.begin(), column_of.end(), kNone) > 0) return std::nullopt;
  const std::vector<uint32_t> contracted = contracted_order(compact, order, chosen);
  if (contracted.empty()) return std::nullopt;
  Decoder decoder(compact);
  uint32_t last = kNone;
  for (uint32_t node : contracted) {
    if (column_of[node] != last) decoder.apply(column_of[node], {});
    last = column_of[node];
  }
  Cover cover = decoder.take();
  if (cover.seconds == kInfinity) return std::nullopt;
  return cover;
}

}  // namespace collage::search
