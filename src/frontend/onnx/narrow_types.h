// Element types of ONNX that are narrower than any DType: integers of 2 and 4 bits, floats of 4 and
// 8. Tensors of them have a wider carrier type that holds every value: int8, uint8, or float32.
// While a model is imported, names of values tell their narrow types; operators that make such
// values (Cast, QuantizeLinear) round to the type, and operators that only move elements pass it
// on.
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
  // For floats: bits of the mantissa, the least exponent of a normal number, the largest number,
  // and which special values exist.
  int mantissa = 0;
  int least_exponent = 0;
  float largest = 0;
  enum class Special { kNone, kNaN, kNaNAndInfinity, kPowersOfTwo } special = Special::kNone;
};

// Returns null if the type is none of them.
const NarrowType* narrow_type(int32_t data_type);
// Decodes a float from its bits.
float narrow_float(const NarrowType& type, unsigned bits);

// Returns whether an operator copies elements of its first inputs and computes nothing of them.
bool only_moves(std::string_view op);

}  // namespace collage::frontend
