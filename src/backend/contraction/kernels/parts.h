// Splits numbers into parts of bfloat16 for products.
//
// A float32 is the sum of two bfloat16 numbers up to 2^-18 of itself, or of three exactly. So a
// product of float32 matrices is the sum of the products of their parts; those below the result's
// last digits are left out (G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16
// Artificial Intelligence Datatype For Higher-Precision Computations", ARITH 2019):
//
//   parts 1 and 1: hi·hi                             errs by 2^-8 a term: bfloat16
//   parts 1 and 2: hi·hi + hi·lo                      by 2^-9: only the left operand is rounded
//   parts 2 and 2: hi·hi + hi·lo + lo·hi              by 2^-17
//   parts 3 and 3: the six of parts i, j, i+j < 3      as float32 does
//
// Exponents are float32's. An infinite operand gives NaN where float32 gives infinity.
#pragma once

namespace collage::contraction {

/// The number of parts of each operand of a product.
struct Parts {
  int left = 2, right = 2;

  int products() const { return left < right ? left * right : left * (left + 1) / 2; }
  /// The name, by the number of products.
  const char* name() const;
  bool operator==(const Parts&) const = default;
};

}  // namespace collage::contraction
