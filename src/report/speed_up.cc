#include "report/speed_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/statistics.h"

namespace collage {

namespace {

// The chance that a median lies outside what n samples span is 2^(1-n): 3% at six.
constexpr size_t kLeastTurns = 6;
constexpr double kAlike = 0.02;

SpeedUp::Verdict verdict_of(const Interval& interval, size_t turns) {
  if (turns < kLeastTurns) return SpeedUp::Verdict::kTooFewTurns;
  if (interval.low > 1) return SpeedUp::Verdict::kFaster;
  if (interval.high < 1) return SpeedUp::Verdict::kSlower;
  const bool close = interval.low >= 1 - kAlike && interval.high <= 1 + kAlike;
  return close ? SpeedUp::Verdict::kAlike : SpeedUp::Verdict::kMoved;
}

}  // namespace

SpeedUp speed_up(std::span<const double> own, std::span<const double> other) {
  COLLAGE_CHECK(!own.empty() && own.size() == other.size(), "{} and {} blocks", own.size(),
                other.size());
  std::vector<double> ratios;
  for (size_t turn = 0; turn < own.size(); ++turn) ratios.push_back(other[turn] / own[turn]);
  SpeedUp result;
  result.turns = ratios.size();
  result.ratio = median(ratios);
  if (result.turns < kLeastTurns) {
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    result.interval = {*low, *high};
  } else {
    result.interval = median_interval(ratios);
  }
  result.verdict = verdict_of(result.interval, result.turns);
  return result;
}

std::string verdict_name(SpeedUp::Verdict verdict) {
  switch (verdict) {
    case SpeedUp::Verdict::kFaster:
      return "faster";
    case SpeedUp::Verdict::kSlower:
      return "slower";
    case SpeedUp::Verdict::kAlike:
      return "alike";
    case SpeedUp::Verdict::kMoved:
      return "moved";
    case SpeedUp::Verdict::kTooFewTurns:
      return "few turns";
  }
  return "";
}

std::string to_text(const SpeedUp& speed_up) {
  const bool few = speed_up.verdict == SpeedUp::Verdict::kTooFewTurns;
  std::string text =
      fmt::format("{:.2f}x ({:.2f} to {:.2f} {}, {} turn{})", speed_up.ratio, speed_up.interval.low,
                  speed_up.interval.high, few ? "seen" : "in 95%", speed_up.turns,
                  speed_up.turns == 1 ? "" : "s");
  if (few) text += fmt::format(": not decided, {} turns are needed", kLeastTurns);
  if (speed_up.verdict == SpeedUp::Verdict::kMoved)
    text += ": not decided, the machine moved too much between turns";
  if (speed_up.verdict == SpeedUp::Verdict::kAlike) text += ": alike within 2%";
  return text;
}

}  // namespace collage
