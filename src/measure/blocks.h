// Figures from blocks of samples. The samples of a block share what slows the machine for seconds;
// blocks of different moments do not. So a figure's error shows between blocks, and an uncertain
// figure gets one more block rather than more samples.
#pragma once

#include <span>
#include <vector>

#include "base/statistics.h"
#include "measure/cost.h"

namespace collage {

// Makes a block of at least one sample in seconds. It is disturbed if its 90th percentile is more
// than 1.3 times its 10th; the caller adds what probes of the machine saw.
Block block_of(const std::vector<double>& samples);

// Returns the numbers of the blocks that count: a disturbance makes blocks slower, never faster.
// Those near the fastest, and of these the ones that were not disturbed, or all if all were.
std::vector<size_t> undisturbed(std::span<const Block> blocks);

// Most blocks that are kept; the oldest are dropped.
inline constexpr size_t kMostKeptBlocks = 16;

// Returns the figure of at least one block: the medians of those that count.
Measured of_blocks(std::vector<Block> blocks);
inline Measured summarise(const std::vector<double>& samples) {
  return of_blocks({block_of(samples)});
}
// Returns its blocks; one if it does not list them.
std::vector<Block> blocks_of(const Measured& figure);

// Returns the standard error of the median in seconds: of samples within blocks, and between
// blocks.
double standard_error(const Measured& figure);
// Likewise for a comparison with a figure that was timed in turns with it: what slows the machine
// for a while slows both.
double error_in_turns(const Measured& figure);

// Returns whether it was given rather than timed: samples of a clock are never all alike.
bool is_exact(const Measured& figure);

// Returns whether all its blocks were disturbed.
bool is_disturbed(const Measured& figure);

// Returns two standard errors about the median. If every block was disturbed the kernel may be as
// fast as its fastest samples, and faster than what was slowed throughout.
Interval likely_interval(const Measured& figure);

}  // namespace collage
