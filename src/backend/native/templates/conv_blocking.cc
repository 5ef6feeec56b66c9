#include "backend/native/templates/conv_blocking.h"

#include <algorithm>
#include <numeric>

#include "base/integers.h"

namespace collage::native {

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

ConvBlocking conv_blocking(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  ConvBlocking b;
  b.groups = s.groups;
  b.group_in = s.in_channels / s.groups;
  b.group_out = s.out_channels / s.groups;
  if (s.groups > 1) {
    if (b.group_in == b.group_out && kChannelBlock % b.group_in == 0 &&
        s.in_channels % kChannelBlock == 0) {
      b.diagonal = b.group_in < kChannelBlock;
      b.groups = s.in_channels / kChannelBlock;
      b.group_in = b.group_out = kChannelBlock;
    }
    if (b.group_in % kChannelBlock != 0 || b.group_out % kChannelBlock != 0) return b;
  }
  if (p.in_layout == ChannelLayout::kBlocked) {
    // A part of a block where a whole one would multiply lanes that hold no channel.
    const int64_t part = std::gcd(b.group_in, kChannelBlock);
    b.ci = part >= 4 ? part : kChannelBlock;
    b.cb = ceil_div(b.group_in, b.ci);
  } else {
    b.ci = b.group_in <= kChannelBlock ? b.group_in : largest_divisor(b.group_in, kChannelBlock);
    b.cb = b.group_in / b.ci;
  }
  b.kb = ceil_div(s.out_channels, kChannelBlock);
  b.ok = true;
  return b;
}

}  // namespace collage::native
