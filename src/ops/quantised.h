// Which operators and element types quantised models have; ops/quantised.cc registers the former.
#pragma once

#include <collage/tensor.h>

#include <string_view>

namespace collage {

// qnn.conv…d, qnn.dense and qnn.matmul.
bool is_quantised_product(std::string_view op);

// What qnn.quantize may give: integers of 8 or 16 bits, or int32.
bool holds_quanta(DType dtype);
// The same but for int32, of which nobody quantises activations.
bool holds_narrow_quanta(DType dtype);

}  // namespace collage
