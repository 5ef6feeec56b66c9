// Products of real numbers with constant matrices as products of 16-bit integers, of which
// instructions multiply twice as many at a time.
//
//   nn.dense(x, w)      becomes      float32(nn.dense(q, v)) * (unit * units)
//
// q are the elements of a row of x, divided by the row's unit and rounded, v those of a column of
// the weights; v and the columns' units are constants. Units are such that the norms of a row and
// of a column multiply to less than 2^31, so that no sum of products leaves 32 bits, whatever the
// data (Cauchy-Schwarz): each element is left some 16 bits less half of the bits of the number of
// terms. A row with NaN or infinities gives NaN.
#pragma once

#include "ir/expr.h"

namespace collage::native {

struct IntegerProducts {
  Function function;
  /// The largest error of rounding a factor, relative to the largest magnitude of its tensor.
  double rounding = 0;
};

/// The flat function with such products; kUnsupported where it has none. Products of few rows are
/// left alone, whose weights take longer to read than to multiply.
Result<IntegerProducts> with_integer_products(const Function& flat);

}  // namespace collage::native
