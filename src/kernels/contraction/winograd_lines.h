// Patches of winograd.h, 16 channels at a time, and what its matrices make of them: first of each
// row, then, with rows in the place of numbers, of the columns. Each number has a name: compilers
// keep arrays of vectors in memory.
#pragma once

#include <array>
#include <numbers>

#include "kernels/contraction/vectors.h"
#include "kernels/contraction/winograd.h"

namespace collage::contraction::winograd::lines {

/// F(4x4)'s points are kNear, -kNear, kFar and -kFar beside 0 and infinity.
constexpr double kNear = 1 / std::numbers::sqrt2, kFar = std::numbers::sqrt2;
constexpr double kNear2 = 0.5, kFar2 = 2;  // squared
static_assert(kNear2 * kFar2 == 1);

/// Of a row or column of three taps, what G makes of it.
inline std::array<double, 6> weights(Form form, double a, double b, double c) {
  if (form == Form::kTwo) return {a, (a + b + c) / 2, (a - b + c) / 2, c, 0, 0};
  const auto at = [&](double point, double square, double other) {
    return (a + point * b + square * c) / (2 * square * (square - other));
  };
  return {a,
          at(kNear, kNear2, kFar2),
          at(-kNear, kNear2, kFar2),
          at(kFar, kFar2, kNear2),
          at(-kFar, kFar2, kNear2),
          c};
}

/// A number of each channel.
struct Vector {
  __m512 v;
};
/// Numbers of a row or column, or rows of a patch.
template <typename T>
struct Two {
  T a, b;
};
template <typename T>
struct Four {
  T a, b, c, d;
};
template <typename T>
struct Six {
  T a, b, c, d, e, f;
};

COLLAGE_VECTORS_INSIDE Vector sum(Vector x, Vector y) { return {_mm512_add_ps(x.v, y.v)}; }
COLLAGE_VECTORS_INSIDE Vector difference(Vector x, Vector y) { return {_mm512_sub_ps(x.v, y.v)}; }
COLLAGE_VECTORS_INSIDE Vector times(float factor, Vector x) {
  return {_mm512_mul_ps(_mm512_set1_ps(factor), x.v)};
}
/// x + factor * y.
COLLAGE_VECTORS_INSIDE Vector plus(Vector x, float factor, Vector y) {
  return {_mm512_fmadd_ps(_mm512_set1_ps(factor), y.v, x.v)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Four<T> sum(const Four<T>& x, const Four<T>& y) {
  return {sum(x.a, y.a), sum(x.b, y.b), sum(x.c, y.c), sum(x.d, y.d)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Four<T> difference(const Four<T>& x, const Four<T>& y) {
  return {difference(x.a, y.a), difference(x.b, y.b), difference(x.c, y.c), difference(x.d, y.d)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Six<T> sum(const Six<T>& x, const Six<T>& y) {
  return {sum(x.a, y.a), sum(x.b, y.b), sum(x.c, y.c), sum(x.d, y.d), sum(x.e, y.e), sum(x.f, y.f)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Six<T> difference(const Six<T>& x, const Six<T>& y) {
  return {difference(x.a, y.a), difference(x.b, y.b), difference(x.c, y.c),
          difference(x.d, y.d), difference(x.e, y.e), difference(x.f, y.f)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Six<T> times(float factor, const Six<T>& x) {
  return {times(factor, x.a), times(factor, x.b), times(factor, x.c),
          times(factor, x.d), times(factor, x.e), times(factor, x.f)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Six<T> plus(const Six<T>& x, float factor, const Six<T>& y) {
  return {plus(x.a, factor, y.a), plus(x.b, factor, y.b), plus(x.c, factor, y.c),
          plus(x.d, factor, y.d), plus(x.e, factor, y.e), plus(x.f, factor, y.f)};
}

/// What B^T makes of a row or column.
template <typename T>
COLLAGE_VECTORS_INSIDE Four<T> there(const Four<T>& x) {
  return {difference(x.a, x.c), sum(x.b, x.c), difference(x.c, x.b), difference(x.b, x.d)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Six<T> there(const Six<T>& x) {
  constexpr float kBoth = kNear2 + kFar2;
  const T even_near = plus(x.e, -kFar2, x.c), odd_near = plus(x.d, -kFar2, x.b);
  const T even_far = plus(x.e, -kNear2, x.c), odd_far = plus(x.d, -kNear2, x.b);
  return {plus(sum(x.a, x.e), -kBoth, x.c),  plus(even_near, kNear, odd_near),
          plus(even_near, -kNear, odd_near), plus(even_far, kFar, odd_far),
          plus(even_far, -kFar, odd_far),    plus(sum(x.b, x.f), -kBoth, x.d)};
}

/// What A^T makes of one.
template <typename T>
COLLAGE_VECTORS_INSIDE Two<T> back(const Four<T>& x) {
  return {sum(sum(x.a, x.b), x.c), difference(difference(x.b, x.c), x.d)};
}
template <typename T>
COLLAGE_VECTORS_INSIDE Four<T> back(const Six<T>& x) {
  const T even_near = sum(x.b, x.c), odd_near = difference(x.b, x.c);
  const T even_far = sum(x.d, x.e), odd_far = difference(x.d, x.e);
  return {sum(x.a, sum(even_near, even_far)), plus(times(kNear, odd_near), kFar, odd_far),
          plus(times(kNear2, even_near), kFar2, even_far),
          plus(plus(x.f, kNear2 * kNear, odd_near), kFar2 * kFar, odd_far)};
}

/// The sides of patches: how many numbers there are of what a row has.
template <Form kForm>
struct Side;
template <>
struct Side<Form::kTwo> {
  template <typename T>
  using Of = Four<T>;
  /// read(0), read(1), ...
  template <typename T, typename Read>
  static COLLAGE_VECTORS_INSIDE Four<T> all(const Read& read) {
    return {read(0), read(1), read(2), read(3)};
  }
};
template <>
struct Side<Form::kFour> {
  template <typename T>
  using Of = Six<T>;
  template <typename T, typename Read>
  static COLLAGE_VECTORS_INSIDE Six<T> all(const Read& read) {
    return {read(0), read(1), read(2), read(3), read(4), read(5)};
  }
};

/// Calls visit(number, which one) for each, counted from `first`.
template <typename T, typename Visit>
COLLAGE_VECTORS_INSIDE void each(const Two<T>& x, const Visit& visit, int64_t first = 0) {
  visit(x.a, first);
  visit(x.b, first + 1);
}
template <typename T, typename Visit>
COLLAGE_VECTORS_INSIDE void each(const Four<T>& x, const Visit& visit, int64_t first = 0) {
  each(Two<T>{x.a, x.b}, visit, first);
  each(Two<T>{x.c, x.d}, visit, first + 2);
}
template <typename T, typename Visit>
COLLAGE_VECTORS_INSIDE void each(const Six<T>& x, const Visit& visit, int64_t first = 0) {
  each(Four<T>{x.a, x.b, x.c, x.d}, visit, first);
  each(Two<T>{x.e, x.f}, visit, first + 4);
}

}  // namespace collage::contraction::winograd::lines
