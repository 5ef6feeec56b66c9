// Convolutions. Grouped ones take the weights with the group as a dimension of its own, a depthwise
// convolution being a group a channel; the CPU plugin recognises it.
#include <openvino/op/convolution.hpp>
#include <openvino/op/group_conv.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

// [a, b, …] as [groups, a / groups, b, …].
Value grouped(const Value& weight, Shape shape, int64_t groups) {
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  return reshaped(weight, shape);
}

Result<ov::OutputVector> convert_conv(const CallView& view) {
  if (!view.is_constant(1)) return unsupported("weights that are no constant");
  auto strides = cast_ints<ov::Strides>(view.attrs.ints("strides"));
  auto dilation = cast_ints<ov::Strides>(view.attrs.ints("dilation"));
  auto begin = pads_begin<ov::CoordinateDiff>(view.attrs.ints("padding"));
  auto end = pads_end<ov::CoordinateDiff>(view.attrs.ints("padding"));
  int64_t groups = view.attrs.integer("groups");
  if (groups == 1)
    return one(make<ov::op::v1::Convolution>(view[0], view[1], strides, begin, end, dilation));
  return one(make<ov::op::v1::GroupConvolution>(view[0], grouped(view[1], view.shape(1), groups),
                                                strides, begin, end, dilation));
}

Result<ov::OutputVector> convert_transpose(const CallView& view) {
  if (!view.is_constant(1)) return unsupported("weights that are no constant");
  auto strides = cast_ints<ov::Strides>(view.attrs.ints("strides"));
  auto dilation = cast_ints<ov::Strides>(view.attrs.ints("dilation"));
  auto begin = pads_begin<ov::CoordinateDiff>(view.attrs.ints("padding"));
  auto end = pads_end<ov::CoordinateDiff>(view.attrs.ints("padding"));
  auto extra = cast_ints<ov::CoordinateDiff>(view.attrs.ints("output_padding"));
  int64_t groups = view.attrs.integer("groups");
  if (groups == 1)
    return one(make<ov::op::v1::ConvolutionBackpropData>(
        view[0], view[1], strides, begin, end, dilation, ov::op::PadType::EXPLICIT, extra));
  return one(make<ov::op::v1::GroupConvolutionBackpropData>(
      view[0], grouped(view[1], view.shape(1), groups), strides, begin, end, dilation,
      ov::op::PadType::EXPLICIT, extra));
}

}  // namespace

ConverterTable conv_converters() {
  return {
      {"nn.conv1d", kFloat, convert_conv},
      {"nn.conv2d", kFloat, convert_conv},
      {"nn.conv3d", kFloat, convert_conv},
      {"nn.conv1d_transpose", kFloat, convert_transpose},
      {"nn.conv2d_transpose", kFloat, convert_transpose},
      {"nn.conv3d_transpose", kFloat, convert_transpose},
  };
}

}  // namespace collage::openvino
