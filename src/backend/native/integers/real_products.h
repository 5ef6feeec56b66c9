// Products of quantised tensors as products of real numbers, for which native has templates: an
// operand is dequantised where the template reads it, constant weights ahead. Sums of float32 are
// exact as far as 24 bits go. Libraries with instructions for bytes are faster where there are
// some; this is for machines and shapes without.
//
//   qnn.conv2d(x, w, s, z, t, u)   becomes   nn.conv2d(qnn.dequantize(x, 1, z), s * t * (w - u))
#pragma once

#include "ir/expr.h"

namespace collage::native {

/// Why it cannot become one that has a template.
Status check_quantised_product(const CallNode& call);

/// The flat function with such products of real numbers.
Result<Function> with_real_products(const Function& flat);

/// A kernel's function as it is compiled: flat, with such products.
Result<Function> flattened(const Function& function);

/// Of quantised tensors, or of int32 (integer_products.h).
bool has_integer_product(const Function& flat);

}  // namespace collage::native
