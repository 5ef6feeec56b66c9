#include "measure/blocks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace collage {

namespace {

// A block whose 90th percentile is so much above its 10th was disturbed in part, …
constexpr double kSpread = 1.3;
// … one so much above the fastest of a kernel's throughout.
constexpr double kSlow = 1.1;
// By what figures of one kernel differ from one quiet moment to the next, as a part of them.
constexpr double kMoment = 0.03;
// What disturbs without being seen in the samples slows by at most so much, mostly.
constexpr double kHidden = 1.2;

double mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Of the block's median, taken as normal, from the spread of a normal sample.
double error_within(const Block& block) {
  const double deviation = (block.p90 - block.p10) / 2.56;
  return deviation * std::sqrt(1.57 / std::max(block.samples, 1));
}

// `moment`: the least by which its blocks are taken to be apart.
double error_of(const Measured& figure, double moment) {
  const std::vector<Block> blocks = blocks_of(figure);
  std::vector<double> within, between;
  for (size_t b : undisturbed(blocks)) {
    within.push_back(error_within(blocks[b]));
    between.push_back(blocks[b].median - figure.median);
  }
  const auto count = static_cast<double>(between.size());
  const double apart = count > 1 ? mean_square(between) * count / (count - 1) : 0;
  return std::sqrt((mean_square(within) + std::max(apart, moment * moment)) / count);
}

}  // namespace

Block block_of(const std::vector<double>& samples) {
  Block block = {median(samples), percentile(samples, 0.1), percentile(samples, 0.9),
                 static_cast<int>(samples.size())};
  block.disturbed = block.p90 > kSpread * block.p10;
  return block;
}

std::vector<size_t> undisturbed(std::span<const Block> blocks) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Block& block : blocks) fastest = std::min(fastest, block.median);
  std::vector<size_t> near, kept;
  for (size_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].median <= kSlow * fastest) near.push_back(b);
  std::copy_if(near.begin(), near.end(), std::back_inserter(kept),
               [&](size_t b) { return !blocks[b].disturbed; });
  return kept.empty() ? near : kept;
}

Measured of_blocks(std::vector<Block> blocks) {
  std::vector<double> medians, p10s, p90s;
  Measured figure;
  for (size_t b : undisturbed(blocks)) {
    medians.push_back(blocks[b].median);
    p10s.push_back(blocks[b].p10);
    p90s.push_back(blocks[b].p90);
    figure.samples += blocks[b].samples;
  }
  figure.median = median(medians);
  // Between two blocks each is rounded by itself.
  figure.p10 = std::min(median(p10s), figure.median);
  figure.p90 = std::max(median(p90s), figure.median);
  if (blocks.size() > 1 || blocks[0].disturbed) figure.blocks = std::move(blocks);
  return figure;
}

std::vector<Block> blocks_of(const Measured& figure) {
  if (!figure.blocks.empty()) return figure.blocks;
  return {Block{figure.median, figure.p10, figure.p90, figure.samples}};
}

double standard_error(const Measured& figure) { return error_of(figure, kMoment * figure.median); }

double error_in_turns(const Measured& figure) { return error_of(figure, 0); }

bool is_exact(const Measured& figure) {
  const std::vector<Block> blocks = blocks_of(figure);
  return std::all_of(blocks.begin(), blocks.end(),
                     [](const Block& block) { return block.p10 == block.p90; });
}

bool is_disturbed(const Measured& figure) {
  return !figure.blocks.empty() && std::all_of(figure.blocks.begin(), figure.blocks.end(),
                                               [](const Block& block) { return block.disturbed; });
}

Interval likely_interval(const Measured& figure) {
  const double reach = 2 * standard_error(figure);
  Interval interval = {std::max(0.0, figure.median - reach), figure.median + reach};
  if (is_disturbed(figure))
    interval.low = std::min({interval.low, figure.p10, figure.median / kHidden});
  return interval;
}

}  // namespace collage
