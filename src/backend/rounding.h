// Rounding: what a variant rounds beyond the rounding of any kernel that computes in the function's
// own types. A backend states it, and the check of its kernels allows no more than follows from it
// (verify/rounding_error.h).
//
// Except for `sums` each number is the largest error of one rounding, relative to what is rounded:
// 2^-24 for float32, 2^-8 for bfloat16.
#pragma once

namespace collage {

// The rounding that a compilation allows, from the least to the most.
enum class RoundingLimit {
  kStrict,   // what any kernel does that computes plain sums in float32: --accuracy strict
  kDefault,  // errors of float32's size (Winograd, sums of products of bfloat16 parts)
  kAny,      // by the user's leave, smaller types too: --max-error
};

struct Rounding {
  // The factor by which the function's own operators err more than plain sums do. Those of
  // kWinograd2 and kWinograd4 stand for these algorithms: convolutions that they can compute err by
  // what their tiles hold (verify/tile_rounding.h), other operators as plain sums. With any other
  // factor all operators err so much more.
  double sums = 1;
  // Rounding of the factors that convolutions, products and attention multiply.
  double factors = 0;
  // Rounding of these factors, relative to the largest magnitude of their tensor (fixed point).
  double fixed_point = 0;
  // Rounding of every tensor that an operator takes or gives: inputs, weights, results.
  double tensors = 0;

  bool operator==(const Rounding&) const = default;
  bool none() const { return *this == Rounding(); }
  // Returns the least limit that allows it.
  RoundingLimit limit() const;
};

namespace rounding {

constexpr Rounding kBFloat16{.tensors = 0x1p-8};         // every tensor
constexpr Rounding kBFloat16Factors{.factors = 0x1p-8};  // what is multiplied, sums are float32
// Factors as sums of two bfloat16 numbers, the product of the two small ones left out.
constexpr Rounding kBFloat16Pairs{.factors = 0x1p-17};
// Winograd's F(2x2, 3x3) and F(4x4, 3x3) in float32. The latter's transformations cancel digits:
// for 16 to 512 channels its errors are 4 times those of plain sums in root mean square, and the
// largest 12 times that.
constexpr Rounding kWinograd2{.sums = 2};
constexpr Rounding kWinograd4{.sums = 5};

}  // namespace rounding

}  // namespace collage
