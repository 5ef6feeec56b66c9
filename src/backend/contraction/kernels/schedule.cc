#include "backend/contraction/kernels/schedule.h"

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
  if (shares_rows || !shares_columns) list.push_back({parts, false, bytes > kCachedWeights});
  if (shares_columns && (!shares_rows || bytes > kCachedWeights / 4))
    list.push_back({parts, true, true});
  return list;
}

}  // namespace collage::contraction
