#include "kernels/contraction/packed_operand.h"

#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "kernels/contraction/geometry.h"
#include "kernels/contraction/integers.h"
#include "ops/half.h"
#include "runtime/huge_pages.h"
#include "runtime/shared_constants.h"

namespace collage::contraction {
namespace {

/// The most steps, `most` at most, that can be taken at a time while the sums stay below kRunLimit.
int64_t longest_run(const std::vector<int64_t>& steps, int64_t most) {
  for (int64_t run = most; run > 1; --run) {
    bool fits = true;
    int64_t sum = 0;
    for (size_t s = 0; s < steps.size() && fits; ++s) {
      sum = static_cast<int64_t>(s) % run == 0 ? steps[s] : sum + steps[s];
      fits = sum <= kRunLimit;
    }
    if (fits) return run;
  }
  return 1;
}

/// What a unit of a column's weights stands for: the least that holds the largest one, or, where it
/// may be coarse, as much more, up to four times, as lets all products of a sum add up at once.
double unit_of(double largest, double total, bool coarse) {
  constexpr double kRounding = 1.01;  // which may raise the total
  if (largest == 0) return 1;
  const double finest = largest / kWeightLimit;
  return std::clamp(kRounding * total / kRunLimit, finest, coarse ? 4 * finest : finest);
}

}  // namespace

int64_t PackedOperand::first_input(int64_t block) const {
  return block * kBlockColumns / group_outputs_ * group_inputs_;
}

int64_t PackedOperand::last_input(int64_t block) const {
  const int64_t column = std::min((block + 1) * kBlockColumns, out_channels_) - 1;
  return (column / group_outputs_ + 1) * group_inputs_ - 1;
}

int64_t PackedOperand::first_depth(int64_t block) const {
  return std::min(first_input(block) / kTileDepth, depth_blocks_ - depth_count_);
}

PackedOperand PackedOperand::planned(const Extents& c, int64_t out_channels, const Parts& parts) {
  PackedOperand packed;
  packed.parts_ = parts.right;
  packed.column_tiles_ = ceil_div(out_channels, kTileColumns);
  packed.group_inputs_ = c.group_inputs();
  packed.group_outputs_ = out_channels / c.groups;
  packed.out_channels_ = out_channels;
  packed.depth_blocks_ = depth_blocks(c);
  for (int64_t block = 0; block < packed.column_blocks(); ++block)
    packed.depth_count_ =
        std::max(packed.depth_count_, packed.last_input(block) / kTileDepth -
                                          packed.first_input(block) / kTileDepth + 1);
  packed.step_tile_ = packed.parts_ * kTileElements;
  packed.tile_column_ = packed.depth_count_ * c.taps.count() * packed.step_tile_;
  for (int64_t first = 0; const Pass& pass : c.taps.passes) {
    packed.first_steps_.push_back(first);
    first += packed.depth_count_ * static_cast<int64_t>(pass.taps.size());
  }
  return packed;
}

Result<PackedOperand> PackedOperand::create(const Extents& c, const Branch& branch,
                                            const Parts& parts) {
  PackedOperand packed = planned(c, branch.out_channels, parts);
  std::shared_ptr<void> memory = TRY(allocate_on_huge_pages(packed.bytes()));
  auto* data = static_cast<uint16_t*>(memory.get());
  parts.integers ? packed.fill_integers(c, branch, parts.coarse, data)
                 : packed.fill_parts(c, branch, data);
  packed.memory_ = shared_constant({std::move(memory), packed.bytes()}).data;
  packed.data_ = static_cast<const uint16_t*>(packed.memory_.get());
  return packed;
}

Result<PackedOperand> PackedOperand::load(const Extents& c, int64_t out_channels,
                                          const Parts& parts, const SharedBytes& memory,
                                          Units units) {
  PackedOperand packed = planned(c, out_channels, parts);
  const int64_t elements = TRY(checked_num_elements(
      {packed.column_tiles_, packed.depth_count_, c.taps.count(), packed.step_tile_}));
  if (memory.bytes != 2 * static_cast<size_t>(elements))
    return bad_model("packed weights of {} bytes, not {} times 2", memory.bytes, elements);
  const int64_t columns = parts.integers ? packed.column_blocks() * kBlockColumns : 0;
  if (units.run < 1 || static_cast<int64_t>(units.factors.size()) != columns)
    return bad_model("packed weights of {} columns with {} units", columns, units.factors.size());
  packed.memory_ = memory.data;
  packed.data_ = static_cast<const uint16_t*>(packed.memory_.get());
  packed.units_ = std::move(units);
  return packed;
}

template <typename Visit>
void PackedOperand::for_each_weight(const Extents& c, const Branch& branch, int64_t column,
                                    uint16_t* data, Visit&& visit) const {
  const int64_t block = column / kBlockColumns, group = column / group_outputs_;
  const int64_t tile = column / kTileColumns % 2, inside = column % kTileColumns;
  const int64_t step_elements = tiles_across(block) * step_tile_, first = first_depth(block);
  const float* weights = branch.weights.data<float>() + group * branch.group_stride +
                         column % group_outputs_ * branch.column_stride;
  for (int64_t input = 0; input < group_inputs_; ++input) {
    const float* from = weights + input * branch.channel_stride;
    const int64_t channel = group * group_inputs_ + input, depth = channel % kTileDepth;
    const int64_t at = tile * kTileElements + depth / 2 * 2 * kTileColumns + inside * 2 + depth % 2;
    for (size_t pass = 0; pass < c.taps.passes.size(); ++pass) {
      const std::vector<Tap>& taps = c.taps.passes[pass].taps;
      uint16_t* to = data + offset(block, pass) + at;
      int64_t step = (channel / kTileDepth - first) * static_cast<int64_t>(taps.size());
      for (const Tap& tap : taps) {
        double weight = 0;
        for (int64_t element : tap.elements) weight += static_cast<double>(from[element]);
        visit(pass, step, to + step * step_elements, weight);
        ++step;
      }
    }
  }
}

void PackedOperand::fill_parts(const Extents& c, const Branch& branch, uint16_t* data) const {
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < out_channels_; ++column) {
    const int64_t part_elements = tiles_across(column / kBlockColumns) * kTileElements;
    for_each_weight(c, branch, column, data, [&](size_t, int64_t, uint16_t* to, double weight) {
      for (int part = 0; part < parts_; ++part, to += part_elements) {
        *to = float_to_bfloat16(static_cast<float>(weight));
        weight -= static_cast<double>(bfloat16_to_float(*to));
      }
    });
  }
}

void PackedOperand::fill_integers(const Extents& c, const Branch& branch, bool coarse,
                                  uint16_t* data) {
  units_.factors.assign(static_cast<size_t>(column_blocks() * kBlockColumns), 0.0f);
  size_t taps = 0;
  for (const Pass& pass : c.taps.passes) taps = std::max(taps, pass.taps.size());
  const int64_t most_steps = depth_count_ * static_cast<int64_t>(std::max<size_t>(taps, 1));
  int64_t run = most_steps;
#pragma omp parallel for schedule(static) reduction(min : run)
  for (int64_t column = 0; column < out_channels_; ++column) {
    double largest = 0;
    std::vector<double> totals(c.taps.passes.size());  // of each pass
    for_each_weight(c, branch, column, data, [&](size_t pass, int64_t, uint16_t*, double weight) {
      largest = std::max(largest, std::abs(weight));
      totals[pass] += std::abs(weight);
    });
    const double unit = unit_of(largest, *std::max_element(totals.begin(), totals.end()), coarse);
    units_.factors[static_cast<size_t>(column)] = static_cast<float>(unit);
    // The magnitudes that each step of each pass meets.
    std::vector<std::vector<int64_t>> sums;
    for (const Pass& pass : c.taps.passes)
      sums.emplace_back(static_cast<size_t>(depth_count_) * pass.taps.size());
    for_each_weight(c, branch, column, data,
                    [&](size_t pass, int64_t step, uint16_t* to, double weight) {
                      const auto integer = static_cast<int16_t>(std::lrint(weight / unit));
                      *to = static_cast<uint16_t>(integer);
                      sums[pass][static_cast<size_t>(step)] += std::abs(integer);
                    });
    // Inside the reduction `run` starts as the largest number there is.
    for (const std::vector<int64_t>& steps : sums)
      run = std::min(run, longest_run(steps, std::min(run, most_steps)));
  }
  units_.run = run;
}

}  // namespace collage::contraction
