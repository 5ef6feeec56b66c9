// Which operators and element types quantised models have; ops/quantised.cc registers the former.
#pragma once

#include <collage/tensor.h>

#include <cstdint>
#include <string_view>

namespace collage {

class Attrs;
class CallNode;

// qnn.conv…d, qnn.dense and qnn.matmul.
bool is_quantised_product(std::string_view op);

// Their attribute that says how many bits the integers of the right operand have: 8, or 7 where
// they are int8 and none is further than kLargestOf7Bits from zero. Two products of these and uint8
// have a sum of 16 bits: processors without VNNI add up such pairs in one instruction, which
// saturates with others.
inline constexpr std::string_view kWeightBits = "weight_bits";
inline constexpr int64_t kLargestOf7Bits = 64;
// Sums of uint8 times integers fit 16 bits where the integers of either sign add up to this at
// most.
inline constexpr int64_t kLargestSumIn16Bits = 128;
bool has_weights_of_7_bits(const Attrs& attrs);
// Whether sums of such pairs are exact in 16 bits: of uint8 and weights of 7 bits.
bool has_exact_pairs(const CallNode& product);

// What qnn.quantize may give: integers of 8 or 16 bits, or int32.
bool holds_quanta(DType dtype);
// The same but for int32, of which nobody quantises activations.
bool holds_narrow_quanta(DType dtype);

}  // namespace collage
