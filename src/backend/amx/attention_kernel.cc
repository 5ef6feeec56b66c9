#include "backend/amx/attention_kernel.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backend/amx/tiles.h"
#include "backend/amx/vector_math.h"
#include "base/integers.h"

namespace collage::amx {
namespace {

constexpr int64_t kBlock = 32;  // queries or keys of a block of scores
static_assert(kBlock == kTileDepth && kBlock == kBlockColumns);
constexpr float kInverseLog2 = 1.44269504f;

__mmask16 mask_of(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1u);
}

/// To the nearest bfloat16, in the upper half; halves go away from zero.
COLLAGE_AMX inline __m512i rounded(__m512 x) {
  return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}
COLLAGE_AMX inline __m512i rounded_unless_nan(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  return _mm512_mask_add_epi32(bits, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), bits,
                               _mm512_set1_epi32(0x8000));
}

enum class Cut {
  kToNearest,    // each part
  kTowardsZero,  // parts but the last, in less time; a NaN may become a number
};

/// The parts of 16 pairs of numbers: `even` in the lower halves.
template <int kParts, Cut kCut = Cut::kToNearest>
struct Pairs {
  __m512i part[kParts];

  COLLAGE_AMX Pairs(__m512 even, __m512 odd) {
    constexpr __mmask32 kOdd = 0xaaaaaaaa;
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    for (int p = 0;; ++p) {
      const bool last = p + 1 == kParts;
      __m512i a = _mm512_castps_si512(even), b = _mm512_castps_si512(odd);
      if (kCut == Cut::kToNearest) {
        a = rounded_unless_nan(even);
        b = rounded_unless_nan(odd);
      } else if (last) {
        a = rounded(even);
        b = rounded(odd);
      }
      part[p] = _mm512_mask_blend_epi16(kOdd, _mm512_srli_epi32(a, 16), b);
      if (last) return;
      even = _mm512_sub_ps(even, _mm512_castsi512_ps(_mm512_and_si512(a, upper)));
      odd = _mm512_sub_ps(odd, _mm512_castsi512_ps(_mm512_and_si512(b, upper)));
    }
  }
};

COLLAGE_AMX inline void transpose(__m512i (&rows)[16]) {
  __m512i t[16], u[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      u[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  // Quarter q of u[4 i + j] is column 4 q + j of rows 4 i to 4 i + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512i upper02 = _mm512_shuffle_i32x4(u[j], u[4 + j], 0x88),
                  upper13 = _mm512_shuffle_i32x4(u[j], u[4 + j], 0xdd),
                  lower02 = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0x88),
                  lower13 = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0xdd);
    rows[j] = _mm512_shuffle_i32x4(upper02, lower02, 0x88);
    rows[4 + j] = _mm512_shuffle_i32x4(upper13, lower13, 0x88);
    rows[8 + j] = _mm512_shuffle_i32x4(upper02, lower02, 0xdd);
    rows[12 + j] = _mm512_shuffle_i32x4(upper13, lower13, 0xdd);
  }
}

/// Part of a matrix in memory: rows and columns that exist, `row` elements from row to row.
struct Panel {
  const float* at;
  int64_t rows, columns, row;

  COLLAGE_AMX __m512 load(int64_t r, int64_t c) const {
    return r < rows ? _mm512_maskz_loadu_ps(mask_of(columns - c), at + r * row + c)
                    : _mm512_setzero_ps();
  }
  /// From that row and column on.
  Panel from(int64_t r, int64_t c) const { return {at + r * row + c, rows - r, columns - c, row}; }
};

/// 32 columns as left operand: `count` rows of their parts. Column c is paired with column c + 16.
template <int kParts>
COLLAGE_AMX void pack_left(const Panel& panel, int64_t count, float scale, uint16_t* to) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t r = 0; r < count; ++r) {
    const Pairs<kParts> pairs(_mm512_mul_ps(panel.load(r, 0), factor),
                              _mm512_mul_ps(panel.load(r, 16), factor));
    for (int p = 0; p < kParts; ++p, to += kTileDepth) _mm512_store_si512(to, pairs.part[p]);
  }
}

/// 32 columns of 16 rows as a tile whose columns are these rows; parts lie `part` elements apart.
template <int kParts>
COLLAGE_AMX void pack_transposed(const Panel& panel, int64_t part, uint16_t* to) {
  __m512i rows[kParts][16];
  for (int r = 0; r < 16; ++r) {
    const Pairs<kParts> pairs(panel.load(r, 0), panel.load(r, 16));
    for (int p = 0; p < kParts; ++p) rows[p][r] = pairs.part[p];
  }
  for (int p = 0; p < kParts; ++p) {
    transpose(rows[p]);
    for (int r = 0; r < 16; ++r) _mm512_store_si512(to + p * part + r * kTileDepth, rows[p][r]);
  }
}

/// 32 rows of 16 columns as a tile. Row r is paired with row r + 16.
template <int kParts>
COLLAGE_AMX void pack_right(const Panel& panel, int64_t part, uint16_t* to) {
  for (int r = 0; r < 16; ++r) {
    const Pairs<kParts> pairs(panel.load(r, 0), panel.load(r + 16, 0));
    for (int p = 0; p < kParts; ++p)
      _mm512_store_si512(to + p * part + r * kTileDepth, pairs.part[p]);
  }
}

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
COLLAGE_AMX void finish(const float* results, const Lanes& sums, int64_t rows, int64_t columns,
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
      return unsupported("amx: attention to {} keys of width {}", a_.keys, a_.width);
    for (int64_t i = 0; i < depth_blocks_; ++i)
      query_steps_.push_back(static_cast<int32_t>(i * kQueryBytes));
    for (int64_t i = 0; i < key_blocks_; ++i)
      score_steps_.push_back(static_cast<int32_t>(i * kScoreBytes));
    return {};
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(threads_ * thread_elements()) * 2;
  }

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
      const Panel queries{input(a_.q, head), a_.queries, a_.width, a_.q.row};
      Panel mask{nullptr, 0, 0, 0};
      if (a_.mask)
        mask = {input(*a_.mask, head, a_.constant_mask), a_.queries, a_.keys, a_.mask->row};
      float* out = static_cast<float*>(args.outputs[0]) + a_.out.heads[static_cast<size_t>(head)];
      for (int64_t block = first; block < last; ++block)
        attend(block, queries, mask, keys, values, scratch, out);
    }
  }

  void attend(int64_t block, const Panel& queries, const Panel& mask, const uint16_t* keys,
              const uint16_t* values, uint16_t* scratch, float* out) const {
    alignas(64) Lanes largest, sums;
    alignas(64) float results[kBlock * kBlockColumns];
    const int64_t first = block * kBlock, rows = std::min(kBlock, a_.queries - first);
    const int down = rows > kTileRows ? 2 : 1;
    const int64_t padded = down * kTileRows, blocks = seen_blocks(block);
    uint16_t *left = scratch, *scores = left + depth_blocks_ * kQueryBytes / 2;
    for (int64_t depth = 0; depth < depth_blocks_; ++depth)
      pack_left<kParts>(queries.from(first, depth * kTileDepth), padded, a_.scale * kInverseLog2,
                        left + depth * kQueryBytes / 2);

    const auto block_scores = [&](int64_t b) {
      return reinterpret_cast<float*>(scores + b * kScoreBytes / 2);
    };
    const auto score = [&](int64_t b) {
      multiply_block({{left, left + kTileRows * kQueryRow},
                      kQueryRow * 2,
                      query_steps_.data(),
                      depth_blocks_,
                      keys + b * depth_blocks_ * 2 * kTileParts,
                      block_scores(b)},
                     down, 2, kParts);
      const int64_t left_keys = a_.keys - b * kBlock;
      const bool diagonal = a_.causal && b >= block;
      if (diagonal || left_keys < kBlock || mask.at != nullptr)
        hide({diagonal ? 1 : left_keys, diagonal ? 1 : 0, left_keys,
              mask.at == nullptr ? mask : mask.from(first, b * kBlock)},
             padded, block_scores(b));
    };
    // Scores are weighed while they are near, against the largest of the first block. Where those
    // of a later one are larger by so much that weights become unwieldy, all is done again.
    for (int64_t known : {int64_t{1}, blocks}) {
      clear(largest, -std::numeric_limits<float>::infinity());
      for (int64_t b = 0; b < known; ++b) {
        score(b);
        find_largest(block_scores(b), padded, largest);
      }
      spread_largest(padded, largest);
      clear(sums, 0);
      for (int64_t b = 0; b < blocks; ++b) {
        if (b >= known) score(b);
        weigh<kParts>(block_scores(b), padded, largest, sums);
      }
      if (all_below(0x1p60f, padded, sums)) break;
    }
    for (int64_t pair = 0; 2 * pair < value_tiles_; ++pair) {
      multiply_block({{scores, scores + kTileRows * kScoreRow},
                      kScoreRow * 2,
                      score_steps_.data(),
                      blocks,
                      values + pair * 2 * key_blocks_ * kTileParts,
                      results},
                     down, tiles_across(pair), kParts);
      const int64_t column = pair * kBlockColumns;
      finish(results, sums, rows, std::min(kBlockColumns, a_.value_width - column),
             out + first * a_.out.row + column, a_.out.row);
    }
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
