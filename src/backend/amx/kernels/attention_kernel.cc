#include "backend/amx/kernels/attention_kernel.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backend/amx/kernels/panel.h"
#include "backend/amx/kernels/saved_attention.h"
#include "backend/amx/kernels/tiles.h"
#include "backend/contraction/kernels/vector_math.h"
#include "base/integers.h"

namespace collage::amx {
namespace {

using contraction::power_of_two;

constexpr int64_t kBlock = 32;  // queries or keys of a block of scores
static_assert(kBlock == kTileDepth && kBlock == kBlockColumns);
constexpr float kInverseLog2 = 1.44269504f;

/// What hides some of a block's scores.
struct Hiding {
  int64_t keys;    ///< that its first row sees
  int64_t growth;  ///< how many more each next row sees
  int64_t most;
  Panel added;  ///< to the scores; from null: nothing
};

/// Scores are logarithms to the base 2. Numbers whose product would be infinite, beside which
/// scores are nothing, stay as they are.
COLLAGE_AMX inline __m512 in_log2(__m512 x) {
  const __mmask16 small = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(1e38f), _CMP_LT_OQ);
  return _mm512_mask_mul_ps(x, small, x, _mm512_set1_ps(kInverseLog2));
}

COLLAGE_AMX void hide(const Hiding& hiding, int64_t rows, float* scores) {
  const __m512 hidden = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < kBlock; c += 16) {
      float* at = scores + r * kBlock + c;
      __m512 value = _mm512_load_ps(at);
      if (hiding.added.at != nullptr)
        value = _mm512_add_ps(value, in_log2(hiding.added.load(r, c)));
      const int64_t seen = std::min(hiding.keys + r * hiding.growth, hiding.most);
      _mm512_store_ps(at, _mm512_mask_mov_ps(hidden, mask_of(seen - c), value));
    }
}

/// Of each row 16 values whose largest is the row's, or whose sum.
using Lanes = float[kBlock][16];

COLLAGE_AMX void clear(Lanes& lanes, float value) {
  for (auto& row : lanes) _mm512_store_ps(row, _mm512_set1_ps(value));
}

COLLAGE_AMX void find_largest(const float* scores, int64_t rows, Lanes& largest) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* at = scores + r * kBlock;
    const __m512 here = _mm512_max_ps(_mm512_load_ps(at), _mm512_load_ps(at + 16));
    _mm512_store_ps(largest[r], _mm512_max_ps(_mm512_load_ps(largest[r]), here));
  }
}

COLLAGE_AMX void spread_largest(int64_t rows, Lanes& largest) {
  for (int64_t r = 0; r < rows; ++r)
    _mm512_store_ps(largest[r], _mm512_set1_ps(_mm512_reduce_max_ps(_mm512_load_ps(largest[r]))));
}

COLLAGE_AMX bool all_below(float bound, int64_t rows, const Lanes& lanes) {
  __mmask16 below = 0xffff;
  for (int64_t r = 0; r < rows; ++r)
    below &= _mm512_cmp_ps_mask(_mm512_load_ps(lanes[r]), _mm512_set1_ps(bound), _CMP_LT_OQ);
  return below == 0xffff;
}

/// Scores become weights, as a left operand, in their place; the last row first, since three parts
/// of a row are longer than its scores.
template <int kParts>
COLLAGE_AMX void weigh(float* block, int64_t rows, const Lanes& largest, Lanes& sums) {
  constexpr int kDegree = kParts == 3 ? 5 : 4;
  for (int64_t r = rows; r-- > 0;) {
    const float* scores = block + r * kBlock;
    const __m512 top = _mm512_load_ps(largest[r]);
    const __m512 low = power_of_two<kDegree>(_mm512_sub_ps(_mm512_load_ps(scores), top)),
                 high = power_of_two<kDegree>(_mm512_sub_ps(_mm512_load_ps(scores + 16), top));
    _mm512_store_ps(sums[r], _mm512_add_ps(_mm512_load_ps(sums[r]), _mm512_add_ps(low, high)));
    const Pairs<kParts, Cut::kTowardsZero> pairs(low, high);  // of NaN the row's sum is NaN
    uint16_t* to = reinterpret_cast<uint16_t*>(block) + r * (kParts == 3 ? 3 : 2) * kTileDepth;
    for (int p = 0; p < kParts; ++p) _mm512_store_si512(to + p * kTileDepth, pairs.part[p]);
  }
}

/// Rows of a block of results, divided by their sums.
COLLAGE_AMX void finish_rows(const float* results, const Lanes& sums, int64_t rows, int64_t columns,
                             float* to, int64_t row) {
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 factor = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(_mm512_load_ps(sums[r])));
    for (int64_t c = 0; c < columns; c += 16)
      _mm512_mask_storeu_ps(to + r * row + c, mask_of(columns - c),
                            _mm512_mul_ps(_mm512_load_ps(results + r * kBlock + c), factor));
  }
}

template <int kParts>
class AttentionKernel : public Kernel {
 public:
  AttentionKernel(Attention attention, int threads)
      : a_(std::move(attention)),
        threads_(threads),
        query_blocks_(ceil_div(a_.queries, kBlock)),
        key_blocks_(ceil_div(a_.keys, kBlock)),
        depth_blocks_(ceil_div(a_.width, kTileDepth)),
        value_tiles_(ceil_div(a_.value_width, kTileColumns)) {
    for (int64_t block = 0; block < query_blocks_; ++block)
      work_before_.push_back((block == 0 ? 0 : work_before_.back() + work(block - 1)));
    work_before_.push_back(work_before_.back() + work(query_blocks_ - 1));
  }

  Status prepare() {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (key_blocks_ * kScoreBytes > kMost || depth_blocks_ * kQueryBytes > kMost)
      return unsupported("attention to {} keys of width {}", a_.keys, a_.width);
    for (int64_t i = 0; i < depth_blocks_; ++i)
      query_steps_.push_back(static_cast<int32_t>(i * kQueryBytes));
    for (int64_t i = 0; i < key_blocks_; ++i)
      score_steps_.push_back(static_cast<int32_t>(i * kScoreBytes));
    return {};
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(threads_ * thread_elements()) * 2;
  }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }
  Result<SavedKernel> save() const override { return save_attention(a_, kParts); }

  Status run(const KernelArgs& args) override {
#pragma omp parallel num_threads(threads_)
    {
      const int index = omp_get_thread_num(), team = omp_get_num_threads();
      compute(boundary(index, team), boundary(index + 1, team), args,
              static_cast<uint16_t*>(args.workspace) + index * thread_elements());
    }
    return {};
  }

 private:
  // A row of scores takes 128 bytes, its parts too unless they are three.
  static constexpr int64_t kScoreRow = (kParts == 3 ? 3 : 2) * kTileDepth;
  static constexpr int64_t kScoreBytes = kBlock * kScoreRow * 2;  ///< of a block
  static constexpr int64_t kQueryRow = kParts * kTileDepth;
  static constexpr int64_t kQueryBytes = kBlock * kQueryRow * 2;
  static constexpr int64_t kTileParts = kParts * kTileElements;

  /// A block of queries of one head.
  struct Place {
    int64_t head, block;
  };

  /// Key blocks that a block of queries sees.
  int64_t seen_blocks(int64_t block) const {
    return a_.causal ? std::min(key_blocks_, block + 1) : key_blocks_;
  }
  int64_t work(int64_t block) const { return seen_blocks(block) + 1; }

  /// Where a thread's share begins: all have about the same work.
  Place boundary(int index, int team) const {
    const int64_t of_head = work_before_.back(), at = of_head * a_.heads() * index / team;
    const auto found = std::lower_bound(work_before_.begin(), work_before_.end(), at % of_head);
    const int64_t block = found - work_before_.begin();
    return block == query_blocks_ ? Place{at / of_head + 1, 0} : Place{at / of_head, block};
  }

  int64_t keys_elements() const { return key_blocks_ * 2 * depth_blocks_ * kTileParts; }
  int64_t values_elements() const { return value_tiles_ * key_blocks_ * kTileParts; }
  int64_t thread_elements() const {
    return keys_elements() + values_elements() +
           (depth_blocks_ * kQueryBytes + key_blocks_ * kScoreBytes) / 2;
  }

  /// [block][block of depth][part][tile across]
  void pack_keys(const Panel& keys, int64_t blocks, uint16_t* to) const {
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t depth = 0; depth < depth_blocks_; ++depth, to += 2 * kTileParts)
        for (int64_t tile = 0; tile < 2; ++tile)
          pack_transposed<kParts>(
              keys.from(block * kBlock + tile * kTileColumns, depth * kTileDepth),
              2 * kTileElements, to + tile * kTileElements);
  }

  /// [two tiles of columns][block][part][tile across]
  void pack_values(const Panel& values, int64_t blocks, uint16_t* to) const {
    for (int64_t tile = 0; tile < value_tiles_; ++tile) {
      const int64_t across = tiles_across(tile / 2);
      uint16_t* at = to + tile / 2 * 2 * key_blocks_ * kTileParts + tile % 2 * kTileElements;
      for (int64_t block = 0; block < blocks; ++block, at += across * kTileParts)
        pack_right<kParts>(values.from(block * kBlock, tile * kTileColumns), across * kTileElements,
                           at);
    }
  }

  int tiles_across(int64_t pair) const { return 2 * pair + 1 < value_tiles_ ? 2 : 1; }

  void compute(Place begin, Place end, const KernelArgs& args, uint16_t* memory) const {
    const TileScope scope;
    uint16_t *keys = memory, *values = keys + keys_elements(),
             *scratch = values + values_elements();
    const auto input = [&](const Matrices& m, int64_t head, const Tensor& constant = {}) {
      const void* tensor = constant.raw() != nullptr ? constant.raw() : args.inputs[m.param];
      return static_cast<const float*>(tensor) + m.heads[static_cast<size_t>(head)];
    };
    for (int64_t head = begin.head; head <= end.head; ++head) {
      const int64_t first = head == begin.head ? begin.block : 0,
                    last = head == end.head ? end.block : query_blocks_;
      if (first >= last) continue;
      const int64_t blocks = seen_blocks(last - 1);
      pack_keys({input(a_.k, head), a_.keys, a_.width, a_.k.row}, blocks, keys);
      pack_values({input(a_.v, head), a_.keys, a_.value_width, a_.v.row}, blocks, values);
      Head h{{input(a_.q, head), a_.queries, a_.width, a_.q.row},
             {nullptr, 0, 0, 0},
             keys,
             values,
             scratch,
             scratch + depth_blocks_ * kQueryBytes / 2,
             static_cast<float*>(args.outputs[0]) + a_.out.heads[static_cast<size_t>(head)]};
      if (a_.mask)
        h.mask = {input(*a_.mask, head, a_.constant_mask), a_.queries, a_.keys, a_.mask->row};
      for (int64_t block = first; block < last; ++block) attend(h, block);
    }
  }

  /// What the blocks of queries of one head share.
  struct Head {
    Panel queries, mask;
    const uint16_t *keys, *values;  ///< packed
    uint16_t *left, *scores;        ///< of one block of queries
    float* out;

    float* score_block(int64_t b) const {
      return reinterpret_cast<float*>(scores + b * kScoreBytes / 2);
    }
  };

  void attend(const Head& h, int64_t block) const {
    alignas(64) Lanes sums;
    alignas(64) float results[kBlock * kBlockColumns];
    const int64_t first = block * kBlock, rows = std::min(kBlock, a_.queries - first);
    const int down = rows > kTileRows ? 2 : 1;
    for (int64_t depth = 0; depth < depth_blocks_; ++depth)
      pack_left<kParts>(h.queries.from(first, depth * kTileDepth), down * kTileRows,
                        a_.scale * kInverseLog2, h.left + depth * kQueryBytes / 2);
    weigh_keys(h, block, down, sums);
    for (int64_t pair = 0; 2 * pair < value_tiles_; ++pair) {
      multiply_block({{h.scores, h.scores + kTileRows * kScoreRow},
                      kScoreRow * 2,
                      score_steps_.data(),
                      seen_blocks(block),
                      h.values + pair * 2 * key_blocks_ * kTileParts,
                      results},
                     down, tiles_across(pair), {kParts, kParts});
      const int64_t column = pair * kBlockColumns;
      finish_rows(results, sums, rows, std::min(kBlockColumns, a_.value_width - column),
                  h.out + first * a_.out.row + column, a_.out.row);
    }
  }

  /// Scores are weighed while they are near, against the largest of the first block. Where those of
  /// a later one are larger by so much that weights become unwieldy, all is done again.
  void weigh_keys(const Head& h, int64_t block, int down, Lanes& sums) const {
    alignas(64) Lanes largest;
    const int64_t rows = down * kTileRows, blocks = seen_blocks(block);
    for (int64_t known : {int64_t{1}, blocks}) {
      clear(largest, -std::numeric_limits<float>::infinity());
      for (int64_t b = 0; b < known; ++b) {
        score(h, block, b, down);
        find_largest(h.score_block(b), rows, largest);
      }
      spread_largest(rows, largest);
      clear(sums, 0);
      for (int64_t b = 0; b < blocks; ++b) {
        if (b >= known) score(h, block, b, down);
        weigh<kParts>(h.score_block(b), rows, largest, sums);
      }
      if (all_below(0x1p60f, rows, sums)) return;
    }
  }

  /// The scores of a block of queries for block b of the keys.
  void score(const Head& h, int64_t block, int64_t b, int down) const {
    multiply_block({{h.left, h.left + kTileRows * kQueryRow},
                    kQueryRow * 2,
                    query_steps_.data(),
                    depth_blocks_,
                    h.keys + b * depth_blocks_ * 2 * kTileParts,
                    h.score_block(b)},
                   down, 2, {kParts, kParts});
    const int64_t left_keys = a_.keys - b * kBlock;
    const bool diagonal = a_.causal && b >= block;
    if (diagonal || left_keys < kBlock || h.mask.at != nullptr)
      hide({diagonal ? 1 : left_keys, diagonal ? 1 : 0, left_keys,
            h.mask.at == nullptr ? h.mask : h.mask.from(block * kBlock, b * kBlock)},
           down * kTileRows, h.score_block(b));
  }

  Attention a_;
  int threads_;
  int64_t query_blocks_, key_blocks_, depth_blocks_, value_tiles_;
  std::vector<int64_t> work_before_;                ///< of a head, before each block of queries
  std::vector<int32_t> query_steps_, score_steps_;  ///< bytes to each step of a left operand
};

template <int kParts>
Result<std::unique_ptr<Kernel>> make(Attention attention, int threads) {
  auto kernel = std::make_unique<AttentionKernel<kParts>>(std::move(attention), threads);
  TRY(kernel->prepare());
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_attention_kernel(Attention attention, int parts, int threads) {
  if (parts == 1) return make<1>(std::move(attention), threads);
  return parts == 2 ? make<2>(std::move(attention), threads)
                    : make<3>(std::move(attention), threads);
}

}  // namespace collage::amx
