#include "backend/amx/schedule.h"

#include "backend/amx/dot_products.h"
#include "backend/amx/winograd.h"
#include "base/integers.h"

namespace collage::amx {

std::string Schedule::to_string() const {
  return std::string(parts.name()) + (by_columns ? " columns" : " rows") +
         (winograd        ? " winograd"
          : weights_outer ? " weights outer"
                          : "");
}

std::vector<Schedule> schedules(const Contraction& c, Parts parts, int threads) {
  constexpr int64_t kCached = 1 << 20;  // bytes of weights that stay in a core's own cache
  int64_t columns = 0;
  for (const Branch& branch : c.branches) columns += round_up(branch.out_channels, kTileColumns);
  const int64_t bytes =
      2 * parts.right * round_up(c.group_inputs(), kTileDepth) * c.taps.count() * columns;
  const int64_t rows = c.pass_rows();
  const bool shares_rows = rows >= threads * kBlockRows,
             shares_columns = threads > 1 && columns >= threads * kBlockColumns;
  std::vector<Schedule> list;
  // What fits into one sum anyhow need not be coarse.
  constexpr int64_t kOneSum = 128;
  const bool direct = !parts.coarse || c.group_inputs() * c.taps.count() > kOneSum,
             transformed = parts.integers && (!parts.coarse || c.in_channels > kOneSum);
  if (direct && (shares_rows || !shares_columns)) list.push_back({parts, false, bytes > kCached});
  if (direct && shares_columns && (!shares_rows || bytes > kCached / 4))
    list.push_back({parts, true, true});
  if (transformed && winograd::can_compute(c)) {
    const int64_t patches = rows / int64_t{winograd::kResults};
    if (patches >= threads * kFewestDotRows || !shares_columns)
      list.push_back({parts, false, true, true});
    if (shares_columns) list.push_back({parts, true, true, true});
  }
  return list;
}

}  // namespace collage::amx
