// Element types of ONNX that are narrower than any DType: integers of 2 and 4 bits, floats of 4 and
// 8. Tensors of them have a wider type that holds every value: int8, uint8, or float32. What such a
// value is a number of is known by its name alone while a model is imported; what makes one (Cast,
// QuantizeLinear) rounds to the type, and what only moves elements hands it on.
#pragma once

#include <collage/tensor.h>

#include <string_view>

namespace collage::frontend {

struct NarrowType {
  int32_t onnx;   // TensorProto::DataType
  DType carrier;  // that tensors have
  int bits;       // of an element in a file; those of a byte begin with its lowest
  bool is_float() const { return carrier == DType::kFloat32; }
  bool is_signed() const { return carrier != DType::kUInt8; }
  // Of floats: bits of the mantissa, the least exponent of a normal number, the largest number, and
  // what there is beside numbers.
  int mantissa = 0;
  int least_exponent = 0;
  float largest = 0;
  enum class Special { kNone, kNaN, kNaNAndInfinity, kPowersOfTwo } special = Special::kNone;
};

// Null where the type is none of them.
const NarrowType* narrow_type(int32_t data_type);
// A float by its bits.
float narrow_float(const NarrowType& type, unsigned bits);

// Operators that copy elements of their first inputs and compute nothing of them.
bool only_moves(std::string_view op);

}  // namespace collage::frontend
