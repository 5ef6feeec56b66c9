#include "frontend/onnx/narrow_types.h"

#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace collage::frontend {

namespace {

using ::onnx::TensorProto;
using Special = NarrowType::Special;

constexpr std::array<NarrowType, 10> kTypes = {{
    {TensorProto::UINT2, DType::kUInt8, 2},
    {TensorProto::INT2, DType::kInt8, 2},
    {TensorProto::UINT4, DType::kUInt8, 4},
    {TensorProto::INT4, DType::kInt8, 4},
    {TensorProto::FLOAT4E2M1, DType::kFloat32, 4, 1, 0, 6, Special::kNone},
    {TensorProto::FLOAT8E4M3FN, DType::kFloat32, 8, 3, -6, 448, Special::kNaN},
    {TensorProto::FLOAT8E4M3FNUZ, DType::kFloat32, 8, 3, -7, 240, Special::kNaN},
    {TensorProto::FLOAT8E5M2, DType::kFloat32, 8, 2, -14, 57344, Special::kNaNAndInfinity},
    {TensorProto::FLOAT8E5M2FNUZ, DType::kFloat32, 8, 2, -15, 57344, Special::kNaN},
    {TensorProto::FLOAT8E8M0, DType::kFloat32, 8, 0, -127, 0x1p127F, Special::kPowersOfTwo},
}};

constexpr std::array<std::string_view, 17> kMovers = {
    "Concat",   "DepthToSpace", "Expand", "Flatten",   "Gather",   "GatherElements",
    "GatherND", "Identity",     "Pad",    "Reshape",   "Slice",    "SpaceToDepth",
    "Split",    "Squeeze",      "Tile",   "Transpose", "Unsqueeze"};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace

const NarrowType* narrow_type(int32_t data_type) {
  const auto it = std::find_if(kTypes.begin(), kTypes.end(),
                               [&](const NarrowType& type) { return type.onnx == data_type; });
  return it == kTypes.end() ? nullptr : &*it;
}

float narrow_float(const NarrowType& type, unsigned bits) {
  if (type.special == Special::kPowersOfTwo)
    return bits == 0xff ? kNaN : std::ldexp(1.0F, static_cast<int>(bits) - 127);
  const unsigned sign_bit = 1U << (type.bits - 1);
  const float sign = (bits & sign_bit) != 0 ? -1.0F : 1.0F;
  const unsigned magnitude = bits & (sign_bit - 1);
  const unsigned fraction = magnitude & ((1U << type.mantissa) - 1);
  const int exponent = static_cast<int>(magnitude >> type.mantissa);
  // Types without negative zero have NaN in its place; of the others the exponent of all ones, or
  // the largest number's successor.
  const bool unsigned_zero =
      type.onnx == TensorProto::FLOAT8E4M3FNUZ || type.onnx == TensorProto::FLOAT8E5M2FNUZ;
  if (unsigned_zero && bits == sign_bit) return kNaN;
  if (type.special == Special::kNaNAndInfinity && magnitude >> type.mantissa == 31)
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : kNaN;
  if (type.special == Special::kNaN && !unsigned_zero && magnitude == sign_bit - 1) return kNaN;
  const float value = exponent == 0 ? static_cast<float>(fraction)
                                    : static_cast<float>(fraction + (1U << type.mantissa));
  return sign * std::ldexp(value, std::max(exponent, 1) - 1 + type.least_exponent - type.mantissa);
}

bool only_moves(std::string_view op) {
  return std::find(kMovers.begin(), kMovers.end(), op) != kMovers.end();
}

}  // namespace collage::frontend
