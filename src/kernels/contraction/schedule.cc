#include "kernels/contraction/schedule.h"

#include "base/integers.h"

namespace collage::contraction {

namespace {

/// Filled up to tiles.
int64_t all_columns(const Contraction& c) {
  int64_t columns = 0;
  for (const Branch& branch : c.branches) columns += round_up(branch.out_channels, kTileColumns);
  return columns;
}

}  // namespace

std::string Schedule::to_string() const {
  const std::string name = std::string(parts.name()) + (by_columns ? " columns" : " rows");
  if (winograd) return name + " winograd" + std::to_string(winograd::step_of(*winograd));
  return weights_outer ? name + " weights outer" : name;
}

int64_t weight_bytes(const Contraction& c, const Parts& parts) {
  return 2 * parts.right * round_up(c.group_inputs(), kTileDepth) * c.taps.count() * all_columns(c);
}

std::vector<Schedule> schedules(const Contraction& c, Parts parts, int threads) {
  const int64_t rows = c.pass_rows(), columns = all_columns(c), bytes = weight_bytes(c, parts);
  const bool shares_rows = rows >= threads * kBlockRows,
             shares_columns = threads > 1 && columns >= threads * kBlockColumns;
  std::vector<Schedule> list;
  // What fits into one sum anyhow need not be coarse.
  constexpr int64_t kOneSum = 128;
  const bool direct = !parts.coarse || c.group_inputs() * c.taps.count() > kOneSum;
  if (direct && (shares_rows || !shares_columns)) {
    list.push_back({parts, false, bytes > kCachedWeights});
    // A result that leaves a core's own cache is written in longer runs the other way.
    constexpr int64_t kCachedResult = 1 << 20;  // bytes
    if (parts.integers && bytes <= kCachedWeights && columns > kBlockColumns &&
        rows * columns * int64_t{sizeof(float)} > kCachedResult)
      list.push_back({parts, false, true});
  }
  if (direct && shares_columns && (!shares_rows || bytes > kCachedWeights / 4))
    list.push_back({parts, true, true});
  if (!parts.integers || parts.coarse || !winograd::can_compute(c)) return list;
  for (const winograd::Form form : {winograd::Form::kTwo, winograd::Form::kFour}) {
    const int64_t patches = rows / winograd::results_of(form);
    if (patches >= threads * kFewestDotRows || !shares_columns)
      list.push_back({parts, false, true, form});
    if (shares_columns) list.push_back({parts, true, true, form});
  }
  return list;
}

}  // namespace collage::contraction
