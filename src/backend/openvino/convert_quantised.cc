// Operators of quantised models, in the form that OpenVINO's low-precision transformations look
// for: what a quantised tensor stands for is Convert, Subtract (where the zero point is not zero)
// and Multiply, quantising is FakeQuantize with the type's bounds and Convert. A region that holds
// a FakeQuantize is computed in 8 bits where the plugin has kernels for it, others in float32.
#include <cpuid.h>

#include <algorithm>
#include <limits>
#include <openvino/op/convert.hpp>
#include <openvino/op/convolution.hpp>
#include <openvino/op/fake_quantize.hpp>
#include <openvino/op/group_conv.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/subtract.hpp>

#include "backend/openvino/converter.h"
#include "backend/openvino/translate.h"
#include "ops/quantised.h"

namespace collage::openvino {

bool has_exact_int8() {
  static const bool has = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned kAvxVnni = 1U << 4;
    return __builtin_cpu_supports("avx512vnni") != 0 ||
           (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0);
  }();
  return has;
}

namespace {

// Without VNNI pairs of products are added up in 16 bits.
Status check_exact(const CallView& view) {
  if (has_exact_int8() || has_exact_pairs(view.call)) return {};
  return unsupported("products of 8-bit integers, which saturate without VNNI");
}

constexpr size_t kLevels = 256;  // of 8 bits

struct Bounds {
  int64_t low, high;
};
Bounds bounds_of(const ov::element::Type& type) {
  return type == ov::element::i8 ? Bounds{-128, 127} : Bounds{0, 255};
}

std::shared_ptr<ov::op::v0::Constant> constant_of(const Value& value) {
  return ov::as_type_ptr<ov::op::v0::Constant>(value.get_node_shared_ptr());
}

// [1, …, n, …, 1] for vectors along an axis, as it is for scalars.
Shape along(const Value& parameter, int64_t axis, int64_t rank) {
  if (parameter.get_shape().empty()) return {};
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = static_cast<int64_t>(ov::shape_size(parameter.get_shape()));
  return shape;
}

// The zero point as what can be subtracted from the data as float32; undefined where it is zero.
// The transformations take it for one where it is of the data's own type.
Value zero_point_of(const Value& data, const Value& zero_point, const Shape& shape) {
  if (const auto constant = constant_of(zero_point)) {
    const auto values = constant->cast_vector<int64_t>();
    const auto all = [&](auto holds) { return std::all_of(values.begin(), values.end(), holds); };
    if (all([](int64_t v) { return v == 0; })) return {};
    const ov::element::Type& type = data.get_element_type();
    const Bounds bounds = bounds_of(type);
    if (type.size() == 1 && all([&](int64_t v) { return v >= bounds.low && v <= bounds.high; })) {
      const Value narrow =
          make<ov::op::v0::Constant>(type, ov::Shape(shape.begin(), shape.end()), values);
      return make<ov::op::v0::Convert>(narrow, ov::element::f32);
    }
  }
  return make<ov::op::v0::Convert>(reshaped(zero_point, shape), ov::element::f32);
}

// Scale and zero point broadcast in that shape.
Value dequantised(const Value& data, const Value& scale, const Value& zero_point,
                  const Shape& shape) {
  Value real = make<ov::op::v0::Convert>(data, ov::element::f32);
  if (const Value zero = zero_point_of(data, zero_point, shape); zero.get_node() != nullptr)
    real = make<ov::op::v1::Subtract>(real, zero);
  return make<ov::op::v1::Multiply>(real, reshaped(scale, shape));
}

Result<ov::OutputVector> convert_dequantize(const CallView& view) {
  const int64_t rank = view.rank(0);
  const Shape shape = along(view[1], rank == 0 ? 0 : view.axis("axis", rank), rank);
  if (view.type(0).dtype == DType::kInt32) {
    const auto zero = constant_of(view[2]);
    const auto values = zero == nullptr ? std::vector<int64_t>{1} : zero->cast_vector<int64_t>();
    if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v != 0; }))
      return unsupported("int32 around a zero point");
  }
  return one(dequantised(view[0], view[1], view[2], shape));
}

Result<ov::OutputVector> convert_quantize(const CallView& view) {
  const auto scale = constant_of(view[1]), zero_point = constant_of(view[2]);
  if (scale == nullptr || zero_point == nullptr)
    return unsupported("a scale or zero point that is no constant");
  const ov::element::Type type = element_type(view.result().dtype);
  if (type.size() != 1) return unsupported("results of {}", type.get_type_name());
  const int64_t rank = view.rank(0);
  const Shape along_axis = along(view[1], rank == 0 ? 0 : view.axis("axis", rank), rank);
  const ov::Shape shape(along_axis.begin(), along_axis.end());
  const auto scales = scale->cast_vector<float>();
  const auto zeros = zero_point->cast_vector<int64_t>();
  const Bounds bounds = bounds_of(type);
  const auto input_bound = [&](int64_t bound) -> Value {
    std::vector<float> values;
    for (size_t i = 0; i < scales.size(); ++i)
      values.push_back(scales[i] * static_cast<float>(bound - zeros[i]));
    return make<ov::op::v0::Constant>(ov::element::f32, shape, values);
  };
  const auto output_bound = [&](int64_t bound) -> Value {
    return make<ov::op::v0::Constant>(ov::element::f32, ov::Shape{},
                                      std::vector<float>{static_cast<float>(bound)});
  };
  const Value steps =
      make<ov::op::v0::FakeQuantize>(view[0], input_bound(bounds.low), input_bound(bounds.high),
                                     output_bound(bounds.low), output_bound(bounds.high), kLevels);
  return one(make<ov::op::v0::Convert>(steps, type));
}

// [a, b, …] as [groups, a / groups, b, …].
Shape grouped(Shape shape, int64_t groups) {
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  return shape;
}

Result<ov::OutputVector> convert_quantised_conv(const CallView& view) {
  TRY(check_exact(view));
  if (!view.is_constant(1)) return unsupported("weights that are no constant");
  const auto strides = cast_ints<ov::Strides>(view.attrs.ints("strides"));
  const auto dilation = cast_ints<ov::Strides>(view.attrs.ints("dilation"));
  const auto begin = pads_begin<ov::CoordinateDiff>(view.attrs.ints("padding"));
  const auto end = pads_end<ov::CoordinateDiff>(view.attrs.ints("padding"));
  const int64_t groups = view.attrs.integer("groups");
  const Value data = dequantised(view[0], view[2], view[3], {});
  Shape parameters = along(view[4], 0, view.rank(1));
  if (groups == 1) {
    const Value weight = dequantised(view[1], view[4], view[5], parameters);
    return one(make<ov::op::v1::Convolution>(data, weight, strides, begin, end, dilation));
  }
  if (!parameters.empty()) parameters = grouped(parameters, groups);
  const Value weight =
      dequantised(reshaped(view[1], grouped(view.shape(1), groups)), view[4], view[5], parameters);
  return one(make<ov::op::v1::GroupConvolution>(data, weight, strides, begin, end, dilation));
}

Result<ov::OutputVector> convert_product(const CallView& view, bool transpose_a, bool transpose_b) {
  TRY(check_exact(view));
  const int64_t rank = view.rank(1), channels = transpose_b ? rank - 2 : rank - 1;
  const Value a = dequantised(view[0], view[2], view[3], {});
  const Value b = dequantised(view[1], view[4], view[5], along(view[4], channels, rank));
  return one(make<ov::op::v0::MatMul>(a, b, transpose_a, transpose_b));
}

Result<ov::OutputVector> convert_quantised_dense(const CallView& view) {
  return convert_product(view, false, true);
}

Result<ov::OutputVector> convert_quantised_matmul(const CallView& view) {
  return convert_product(view, view.attrs.flag("transpose_a"), view.attrs.flag("transpose_b"));
}

}  // namespace

ConverterTable quantised_converters() {
  constexpr unsigned kTypes = kNumber | kByte;
  return {
      {"qnn.quantize", kTypes, convert_quantize},
      {"qnn.dequantize", kTypes, convert_dequantize},
      {"qnn.conv1d", kTypes, convert_quantised_conv},
      {"qnn.conv2d", kTypes, convert_quantised_conv},
      {"qnn.conv3d", kTypes, convert_quantised_conv},
      {"qnn.dense", kTypes, convert_quantised_dense},
      {"qnn.matmul", kTypes, convert_quantised_matmul},
  };
}

}  // namespace collage::openvino
