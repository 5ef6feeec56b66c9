// Reading images between pixels: image.grid_sample and nn.deformable_conv of two dimensions.
#include <openvino/op/deformable_convolution.hpp>
#include <openvino/op/grid_sample.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

Result<ov::OutputVector> convert_grid_sample(const CallView& view) {
  using Sample = ov::op::v9::GridSample;
  if (view.rank(0) != 4) return unsupported("{} spatial dimensions", view.rank(0) - 2);
  const std::string& method = view.attrs.string("method");
  const std::string& padding = view.attrs.string("padding_mode");
  const Sample::Attributes attributes(view.attrs.flag("align_corners"),
                                      method == "nearest"  ? Sample::InterpolationMode::NEAREST
                                      : method == "linear" ? Sample::InterpolationMode::BILINEAR
                                                           : Sample::InterpolationMode::BICUBIC,
                                      padding == "zeros"    ? Sample::PaddingMode::ZEROS
                                      : padding == "border" ? Sample::PaddingMode::BORDER
                                                            : Sample::PaddingMode::REFLECTION);
  return one(make<Sample>(view[0], view[1], attributes));
}

Result<ov::OutputVector> convert_deformable_conv(const CallView& view) {
  using Convolution = ov::op::v8::DeformableConvolution;
  if (view.rank(0) != 4) return unsupported("{} spatial dimensions", view.rank(0) - 2);
  const Attrs& attrs = view.attrs;
  const auto strides = cast_ints<ov::Strides>(attrs.ints("strides"));
  const auto dilation = cast_ints<ov::Strides>(attrs.ints("dilation"));
  const auto begin = pads_begin<ov::CoordinateDiff>(attrs.ints("padding"));
  const auto end = pads_end<ov::CoordinateDiff>(attrs.ints("padding"));
  const int64_t groups = attrs.integer("groups"), offset_groups = attrs.integer("offset_groups");
  constexpr auto kExplicit = ov::op::PadType::EXPLICIT;
  if (view.size() == 3)
    return one(make<Convolution>(view[0], view[2], view[1], strides, begin, end, dilation,
                                 kExplicit, groups, offset_groups, true));
  return one(make<Convolution>(view[0], view[2], view[1], view[3], strides, begin, end, dilation,
                               kExplicit, groups, offset_groups, true));
}

}  // namespace

ConverterTable sample_converters() {
  return {
      {"image.grid_sample", kFloat, convert_grid_sample},
      {"nn.deformable_conv", kFloat, convert_deformable_conv},
  };
}

}  // namespace collage::openvino
