// Operators and element types of quantised models; ops/quantised.cc registers the operators.
#pragma once

#include <collage/tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace collage {

class Attrs;
class CallNode;

// Returns whether it is qnn.conv…d, qnn.dense or qnn.matmul.
bool is_quantised_product(std::string_view op);
// Returns for each element of such a product, in float64, the root mean square of the real numbers
// that it adds up, taken over all data and its channel's weights. Arguments are those of the call.
Result<Tensor> typical_products(const CallNode& product, std::span<const Tensor> arguments);

// The attribute of these products that states the bits of the right operand's integers: 8, or 7 if
// they are int8 and none is further than kLargestOf7Bits from zero. Two products of 7 bits and
// uint8 have a sum of 16 bits: processors without VNNI add up such pairs in one instruction, which
// saturates with 8 bits.
inline constexpr std::string_view kWeightBits = "weight_bits";
inline constexpr int64_t kLargestOf7Bits = 64;
// Sums of uint8 times integers fit 16 bits if the integers of either sign add up to at most this.
inline constexpr int64_t kLargestSumIn16Bits = 128;
bool has_weights_of_7_bits(const Attrs& attrs);
// Returns whether sums of such pairs are exact in 16 bits: of uint8 and weights of 7 bits.
bool has_exact_pairs(const CallNode& product);

// Returns whether qnn.quantize may give the type: integers of 8 or 16 bits, or int32.
bool is_quantised_type(DType dtype);
// The same without int32, which is not used for activations.
bool is_narrow_quantised_type(DType dtype);

}  // namespace collage
