#include "backend/native/integers/quad_pairs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/quantised.h"

namespace collage::native {
namespace {

constexpr size_t kQuadTerms = 4;

// Of groups that are alone, while partners are exchanged: where more are, few fit at all, and to
// look for these takes seconds.
constexpr size_t kMostAlone = 64;

using Pair = std::pair<size_t, size_t>;  // of groups; the second may be none

/// The groups of one panel.
class Panel {
 public:
  Panel(const int8_t* weights, size_t groups, size_t lanes)
      : groups_(groups), sums_(lanes * kQuadTerms / 2) {
    positive_.resize(groups * sums_);
    negative_.resize(groups * sums_);
    for (size_t i = 0; i < groups * sums_; ++i) {
      for (const int weight : {weights[2 * i], weights[2 * i + 1]}) {
        positive_[i] = static_cast<uint8_t>(positive_[i] + std::max(weight, 0));
        negative_[i] = static_cast<uint8_t>(negative_[i] + std::max(-weight, 0));
      }
    }
  }

  /// Each group once, alone where `none()` is its second.
  std::vector<Pair> pairs() const {
    std::vector<Pair> found;
    std::vector<size_t> left, alone;
    for (size_t group = 0; group < groups_; ++group) left.push_back(group);
    while (!left.empty()) {
      const size_t first = left.front();
      const auto second = std::find_if(left.begin() + 1, left.end(),
                                       [&](size_t other) { return fit(first, other); });
      if (second == left.end()) {
        alone.push_back(first);
      } else {
        found.emplace_back(first, *second);
        left.erase(second);
      }
      left.erase(left.begin());
    }
    if (alone.size() > kMostAlone) left = std::exchange(alone, {});
    while (!alone.empty()) {
      const size_t group = alone.back();
      alone.pop_back();
      if (!exchange(found, group, alone)) left.push_back(group);
    }
    for (const size_t group : left) found.emplace_back(group, none());
    return found;
  }

  size_t none() const { return groups_; }

 private:
  bool fit(size_t a, size_t b) const {
    const auto within = [&](const std::vector<uint8_t>& parts) {
      const uint8_t *x = &parts[a * sums_], *y = &parts[b * sums_];
      int largest = 0;
      for (size_t i = 0; i < sums_; ++i) largest = std::max(largest, x[i] + y[i]);
      return largest <= kLargestSumIn16Bits;
    };
    return within(positive_) && within(negative_);
  }

  /// Has the group, which is alone, and another that is take the places of a pair's partners.
  bool exchange(std::vector<Pair>& pairs, size_t group, std::vector<size_t>& alone) const {
    for (Pair& pair : pairs) {
      for (const Pair& either : {pair, Pair{pair.second, pair.first}}) {
        const size_t mine = either.first, others = either.second;
        if (!fit(group, mine)) continue;
        const auto second = std::find_if(alone.begin(), alone.end(),
                                         [&](size_t other) { return fit(other, others); });
        if (second == alone.end()) continue;
        pair = {group, mine};
        pairs.emplace_back(*second, others);
        alone.erase(second);
        return true;
      }
    }
    return false;
  }

  size_t groups_, sums_;  ///< sums: of two neighbours, of a group
  std::vector<uint8_t> positive_, negative_;
};

}  // namespace

QuadPairs pair_quads(const Tensor& columns, int64_t lanes) {
  const Shape& shape = columns.shape();
  const size_t rank = shape.size();
  const auto panels = static_cast<size_t>(shape[0]), groups = static_cast<size_t>(shape[rank - 3]),
             group_bytes = static_cast<size_t>(shape[rank - 2]) * kQuadTerms,
             vector_bytes = static_cast<size_t>(lanes) * kQuadTerms;
  const size_t vectors = group_bytes / vector_bytes;  // of a panel
  const auto* weights = columns.data<int8_t>();
  const auto blocks = static_cast<size_t>(columns.size()) / (groups * group_bytes);
  const size_t blocks_of_panel = blocks / panels;
  std::vector<std::vector<Pair>> found;
  size_t most = 0;
  for (size_t block = 0; block < blocks; ++block) {
    found.push_back(
        Panel(weights + block * groups * group_bytes, groups, group_bytes / kQuadTerms).pairs());
    most = std::max(most, found.back().size());
  }
  Shape packed = shape, terms(shape.begin(), shape.end() - 2);
  packed[0] = static_cast<int64_t>(panels * vectors);
  packed[rank - 2] = lanes;
  packed[rank - 3] = terms.back() = static_cast<int64_t>(most);
  terms.push_back(2);
  QuadPairs result{Tensor::zeros(DType::kInt8, packed), Tensor::zeros(DType::kInt8, packed),
                   Tensor::zeros(DType::kInt32, terms)};
  const auto take = [&](size_t block, size_t pair, size_t group, size_t half) {
    if (group == groups) return;
    result.terms.data<int32_t>()[2 * (block * most + pair) + half] =
        static_cast<int32_t>(group * kQuadTerms);
    int8_t* to = (half == 0 ? result.first : result.second).data<int8_t>();
    const int8_t* from = weights + (block * groups + group) * group_bytes;
    const size_t panel = block / blocks_of_panel, inside = block % blocks_of_panel;
    for (size_t v = 0; v < vectors; ++v) {
      const size_t at = ((panel * vectors + v) * blocks_of_panel + inside) * most + pair;
      std::memcpy(to + at * vector_bytes, from + v * vector_bytes, vector_bytes);
    }
  };
  for (size_t block = 0; block < blocks; ++block) {
    for (size_t pair = 0; pair < found[block].size(); ++pair) {
      take(block, pair, found[block][pair].first, 0);
      take(block, pair, found[block][pair].second, 1);
    }
  }
  return result;
}

}  // namespace collage::native
