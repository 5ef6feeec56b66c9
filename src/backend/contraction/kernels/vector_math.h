// Functions of 16 floats at a time.
#pragma once

#include "backend/contraction/kernels/vectors.h"

namespace collage::contraction {

/// Returns e^x, correct to 2^-23: 1e-38 below -87, infinite from 88.73.
COLLAGE_VECTORS inline __m512 exponential(__m512 x) {
  // x = n log 2 + r, |r| <= log(2) / 2; the polynomial is the series of e^r, whose rest is 2^-26.
  x = _mm512_max_ps(_mm512_set1_ps(-87.0f), _mm512_min_ps(_mm512_set1_ps(89.0f), x));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.0f / 5040);
  for (float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(factor));
  return _mm512_scalef_ps(p, n);
}

/// Returns 2^x, within 2^-18 of itself for degree 4, 2^-23 for degree 5; 0 for minus infinity.
template <int kDegree>
COLLAGE_VECTORS inline __m512 power_of_two(__m512 x) {
  // x = n + r, 0 <= r < 1; the polynomials are those of least relative error there.
  static_assert(kDegree == 4 || kDegree == 5);
  constexpr float kFactors[2][6] = {
      {1.00000259f, 0.693003835f, 0.241442757f, 0.0520114609f, 0.0135341677f, 0.0f},
      {0.999999925f, 0.693153073f, 0.240153617f, 0.055826318f, 0.00898934013f, 0.00187757666f}};
  const auto& factors = kFactors[kDegree - 4];
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(factors[kDegree]);
  for (int i = kDegree; i-- > 0;) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(factors[i]));
  return _mm512_scalef_ps(p, x);  // takes floor(x)
}

}  // namespace collage::contraction
