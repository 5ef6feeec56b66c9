// Reading images between pixels: image.grid_sample and nn.deformable_conv of two dimensions.
#include <openvino/op/clamp.hpp>
#include <openvino/op/deformable_convolution.hpp>
#include <openvino/op/grid_sample.hpp>
#include <openvino/op/is_nan.hpp>
#include <openvino/op/select.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

// The grid with coordinates that are far outside of the image, infinite or NaN brought to where the
// library counts pixels rightly. What is read beyond the reach of all taps is the same everywhere,
// and NaN is as far out, unless it gives NaN. After reflection every distance counts.
Value within_reach(const Value& grid, const std::string& method, const std::string& padding) {
  if (padding == "reflection") return grid;
  constexpr double kFar = 1000;
  const bool keeps_nan = padding == "border" && method != "nearest";
  return make<ov::op::v1::Select>(make<ov::op::v10::IsNaN>(grid),
                                  keeps_nan ? grid : scalar(-kFar, grid),
                                  make<ov::op::v0::Clamp>(grid, -kFar, kFar));
}

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
  return one(make<Sample>(view[0], within_reach(view[1], method, padding), attributes));
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
