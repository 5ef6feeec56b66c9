// How many times faster one program is than another, from blocks of runs in turns: each turn gives
// one ratio of the two blocks' medians, so that a machine that changes between turns changes both.
// The result has an interval for the median of the ratios, by order statistics.
//
// The verdict is faster or slower if the interval lies on one side of 1. If it holds 1, the two are
// alike if it lies within 2% of 1; else the machine varied too much to decide. Under six turns no
// interval has a confidence of 95%, and nothing is decided.
#pragma once

#include <span>
#include <string>

#include "measure/timing.h"

namespace collage {

struct SpeedUp {
  enum class Verdict { kFaster, kSlower, kAlike, kMoved, kTooFewTurns };
  double ratio = 1;        // the median of the turns' ratios: above 1, the first program is faster
  Interval interval = {};  // of the median, at about 95%; under six turns: all that was seen
  size_t turns = 0;
  Verdict verdict = Verdict::kTooFewTurns;
  // What the first program takes longer than the other, as a part of the other's time.
  double apparent_loss() const { return ratio < 1 ? 1 / ratio - 1 : 0; }
};

// Takes the blocks' medians (seconds) of both programs, one a turn; as many of one as of the other,
// and at least one.
SpeedUp speed_up(std::span<const double> own, std::span<const double> other);

// Returns "faster", "slower", "alike", "moved" or "few turns", the words of reports.
std::string verdict_name(SpeedUp::Verdict verdict);
// Returns "1.24x (1.20 to 1.29 in 95%, 11 turns)", and what is not decided and why.
std::string to_text(const SpeedUp& speed_up);

}  // namespace collage
