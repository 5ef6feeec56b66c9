// The parts of the table of test cases, and the short forms they are written in.
#pragma once

#include "ops/cases.h"

namespace collage {

using Cases = std::vector<OpCase>;

void add_convolution_cases(Cases& cases);
void add_product_cases(Cases& cases);
void add_window_cases(Cases& cases);
void add_elementwise_cases(Cases& cases);
void add_normalisation_cases(Cases& cases);
void add_recurrent_cases(Cases& cases);
void add_sample_cases(Cases& cases);
void add_reduction_cases(Cases& cases);
void add_shape_cases(Cases& cases);
void add_index_cases(Cases& cases);
void add_quantised_cases(Cases& cases);

inline OpArg f32(Shape shape, ValueRange range = {}) {
  return {{std::move(shape), DType::kFloat32}, false, range};
}
inline OpArg weight(Shape shape, ValueRange range = {}) {
  return {{std::move(shape), DType::kFloat32}, true, range};
}
inline OpArg arg(DType dtype, Shape shape, ValueRange range) {
  return {{std::move(shape), dtype}, false, range};
}
inline OpArg boolean(Shape shape) { return {{std::move(shape), DType::kBool}, false, {}}; }
// Random indices into an axis of that extent, negative ones included.
inline OpArg indices(Shape shape, int64_t extent, DType dtype = DType::kInt64) {
  return {{std::move(shape), dtype},
          false,
          {-static_cast<double>(extent), static_cast<double>(extent - 1)}};
}

}  // namespace collage
