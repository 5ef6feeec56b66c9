// Figures from blocks of samples. The samples of a block share its moment, and so whatever slows
// the machine for seconds; blocks of different moments do not. So a figure's error shows in its
// blocks, not in its samples, and what is uncertain is sampled in one more block rather than for
// longer.
#pragma once

#include <span>
#include <vector>

#include "base/statistics.h"
#include "measure/cost.h"

namespace collage {

// Of samples in seconds, at least one. Disturbed where its 90th percentile is more than 1.3 times
// its 10th; whoever times adds what probes of the machine saw.
Block block_of(const std::vector<double>& samples);

// The numbers of those that count: what disturbs a machine makes blocks slower, never faster. Those
// near the fastest, and of these the ones that were not disturbed, or all where there is none.
std::vector<size_t> undisturbed(std::span<const Block> blocks);

// More are not kept: of a kernel that is measured again and again the oldest go.
inline constexpr size_t kMostKeptBlocks = 16;

// At least one block: the medians of those that count.
Measured of_blocks(std::vector<Block> blocks);
inline Measured summarise(const std::vector<double>& samples) {
  return of_blocks({block_of(samples)});
}
// Those it consists of: one, where it does not say.
std::vector<Block> blocks_of(const Measured& figure);

// Of the median, in seconds: of the samples within blocks, and from one moment to another.
double standard_error(const Measured& figure);

// Whether all its blocks were.
bool is_disturbed(const Measured& figure);

// Two standard errors about the median. Where every block was disturbed the kernel may be as fast
// as its fastest samples, and faster than what was slowed throughout.
Interval likely_interval(const Measured& figure);

}  // namespace collage
