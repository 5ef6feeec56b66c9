#include "backend/contraction/kernels/epilogue.h"

#include <type_traits>

#include "backend/contraction/kernels/vector_math.h"

namespace collage::contraction {
namespace {

COLLAGE_VECTORS inline __m512 sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  return _mm512_div_ps(one, _mm512_add_ps(one, exponential(_mm512_sub_ps(_mm512_setzero_ps(), x))));
}

COLLAGE_VECTORS inline __m512 hyperbolic_tangent(__m512 x) {
  // 2 sigmoid(2x) - 1 loses the digits of small results: there the odd series does.
  const __m512 large =
      _mm512_fmsub_ps(_mm512_set1_ps(2.0f), sigmoid(_mm512_add_ps(x, x)), _mm512_set1_ps(1.0f));
  const __m512 square = _mm512_mul_ps(x, x);
  __m512 p = _mm512_set1_ps(-17.0f / 315);
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2.0f / 15));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(-1.0f / 3));
  const __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(p, square), x, x);
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(square, _mm512_set1_ps(0.01f), _CMP_LT_OQ), large,
                              small);
}

/// M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 7.1.26: errs by 1.5e-7.
COLLAGE_VECTORS inline __m512 error_function(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f), size = _mm512_abs_ps(x);
  const __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(size, _mm512_set1_ps(0.3275911f), one));
  __m512 p = _mm512_set1_ps(1.061405429f);
  for (float factor : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f})
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(factor));
  p = _mm512_mul_ps(p, t);
  const __m512 decay =
      power_of_two<5>(_mm512_mul_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(-1.44269504f)));
  const __m512 value = _mm512_fnmadd_ps(p, decay, one);
  const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
  return _mm512_or_ps(value, sign);
}

COLLAGE_VECTORS inline __m512 half_gated(__m512 x, __m512 gate) {
  const __m512 half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f));
  return _mm512_fmadd_ps(half, gate, half);
}

template <Step::Kind kKind>
COLLAGE_VECTORS inline __m512 activated(const Step& step, __m512 x) {
  if constexpr (kKind == Step::Kind::kLeakyRelu)
    return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), x,
                              _mm512_set1_ps(step.slope));
  if constexpr (kKind == Step::Kind::kGeluErf)
    return half_gated(x, error_function(_mm512_mul_ps(x, _mm512_set1_ps(0.70710678f))));
  if constexpr (kKind == Step::Kind::kGeluTanh) {
    const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
    const __m512 inner = _mm512_fmadd_ps(cube, _mm512_set1_ps(0.044715f), x);
    // (1 + tanh(u)) / 2 = sigmoid(2u)
    return _mm512_mul_ps(x, sigmoid(_mm512_mul_ps(inner, _mm512_set1_ps(2 * 0.79788456f))));
  }
  if constexpr (kKind == Step::Kind::kSigmoid) return sigmoid(x);
  if constexpr (kKind == Step::Kind::kSilu) return _mm512_mul_ps(x, sigmoid(x));
  if constexpr (kKind == Step::Kind::kTanh) return hyperbolic_tangent(x);
  return x;
}

template <Step::Kind kKind>
COLLAGE_VECTORS void activate(const Step& step, size_t rows, float* tile) {
  for (size_t r = 0; r < rows; ++r) {
    float* row = tile + r * kBlockColumns;
    _mm512_store_ps(row, activated<kKind>(step, _mm512_load_ps(row)));
  }
}

COLLAGE_VECTORS void scale(const Step& step, int64_t first_column, size_t rows, float* tile) {
  const __m512 factors = _mm512_loadu_ps(step.columns.data() + first_column);
  for (size_t r = 0; r < rows; ++r) {
    float* row = tile + r * kBlockColumns;
    _mm512_store_ps(row, _mm512_mul_ps(_mm512_load_ps(row), factors));
  }
}

/// A linear step on one row.
struct Linear {
  __m512 columns, low, high;
  const float* tensor;
  __mmask16 mask;

  COLLAGE_VECTORS Linear(const Step& step, const float* added, const TilePlace& place)
      : columns(step.columns.empty() ? _mm512_setzero_ps()
                                     : _mm512_loadu_ps(step.columns.data() + place.first_column)),
        low(_mm512_set1_ps(step.low)),
        high(_mm512_set1_ps(step.high)),
        tensor(added),
        mask(static_cast<__mmask16>((1u << place.columns) - 1u)) {}
  COLLAGE_VECTORS __m512 of(__m512 value, int64_t at) const {
    value = _mm512_add_ps(value, columns);
    if (tensor != nullptr) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, tensor + at));
    // In this order NaN stays.
    return _mm512_min_ps(high, _mm512_max_ps(low, value));
  }
};

COLLAGE_VECTORS inline void write(__m512 value, __mmask16 mask, const TilePlace& place,
                                  int64_t at) {
  if (place.pad) {
    _mm512_storeu_ps(place.out + at, _mm512_maskz_mov_ps(mask, value));
  } else {
    _mm512_mask_storeu_ps(place.out + at, mask, value);
  }
}

/// A linear step; `kWrite`: the last one, whose result goes to its place.
template <bool kWrite>
COLLAGE_VECTORS void linear(const Step& step, const float* tensor, float* tile,
                            const TilePlace& place) {
  const Linear line(step, tensor, place);
  for (size_t r = 0; r < place.rows.size(); ++r) {
    if (place.rows[r] < 0) continue;
    const int64_t at = place.rows[r] + place.offset;
    float* row = tile + r * kBlockColumns;
    const __m512 value = line.of(_mm512_load_ps(row), at);
    if (kWrite) {
      write(value, line.mask, place, at);
    } else {
      _mm512_store_ps(row, value);
    }
  }
}

/// What most activations stand in, in one go: linear, activation, linear and last.
template <Step::Kind kKind>
COLLAGE_VECTORS void activate_between(std::span<const Step> steps, const float* tile,
                                      const TilePlace& place) {
  const Linear before(steps[0], place.tensors[0], place), after(steps[2], place.tensors[2], place);
  for (size_t r = 0; r < place.rows.size(); ++r) {
    if (place.rows[r] < 0) continue;
    const int64_t at = place.rows[r] + place.offset;
    const __m512 value = before.of(_mm512_load_ps(tile + r * kBlockColumns), at);
    write(after.of(activated<kKind>(steps[1], value), at), after.mask, place, at);
  }
}

/// Calls with the kind as a constant; false where it is no activation.
template <typename Call>
bool with_activation(Step::Kind kind, Call&& call) {
  using Kind = Step::Kind;
  switch (kind) {
    case Kind::kLeakyRelu:
      return call(std::integral_constant<Kind, Kind::kLeakyRelu>()), true;
    case Kind::kGeluErf:
      return call(std::integral_constant<Kind, Kind::kGeluErf>()), true;
    case Kind::kGeluTanh:
      return call(std::integral_constant<Kind, Kind::kGeluTanh>()), true;
    case Kind::kSigmoid:
      return call(std::integral_constant<Kind, Kind::kSigmoid>()), true;
    case Kind::kSilu:
      return call(std::integral_constant<Kind, Kind::kSilu>()), true;
    case Kind::kTanh:
      return call(std::integral_constant<Kind, Kind::kTanh>()), true;
    case Kind::kLinear:
    case Kind::kScale:
      break;
  }
  return false;
}

}  // namespace

void finish_tile(std::span<const Step> steps, float* tile, const TilePlace& place) {
  if (steps.size() == 3 && steps[0].kind == Step::Kind::kLinear &&
      with_activation(steps[1].kind,
                      [&](auto kind) { activate_between<kind()>(steps, tile, place); }))
    return;
  for (size_t s = 0; s + 1 < steps.size(); ++s) {
    const Step& step = steps[s];
    if (step.kind == Step::Kind::kLinear) {
      linear<false>(step, place.tensors[s], tile, place);
    } else if (step.kind == Step::Kind::kScale) {
      scale(step, place.first_column, place.rows.size(), tile);
    } else {
      with_activation(step.kind,
                      [&](auto kind) { activate<kind()>(step, place.rows.size(), tile); });
    }
  }
  linear<true>(steps.back(), place.tensors.back(), tile, place);
}

}  // namespace collage::contraction
