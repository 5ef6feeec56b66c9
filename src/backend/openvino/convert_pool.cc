// Pooling. OpenVINO's CEIL_TORCH is our ceil_mode: no window starts in the padding beyond the end.
// Global pooling is a reduction, as OpenVINO's own importer has it.
#include <algorithm>
#include <openvino/op/avg_pool.hpp>
#include <openvino/op/max_pool.hpp>
#include <openvino/op/reduce_max.hpp>
#include <openvino/op/reduce_mean.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

// Whether rounding up adds windows that reach beyond the padding.
bool reaches_beyond(const CallView& view) {
  if (!view.attrs.flag("ceil_mode")) return false;
  const Ints &size = view.attrs.ints("pool_size"), &padding = view.attrs.ints("padding"),
             &strides = view.attrs.ints("strides"), &dilation = view.attrs.ints("dilation");
  for (size_t d = 0; d < size.size(); ++d) {
    int64_t padded = view.shape(0)[d + 2] + padding[d] + padding[d + size.size()];
    int64_t floor = (padded - dilation[d] * (size[d] - 1) - 1) / strides[d] + 1;
    if (view.result().shape[d + 2] != floor) return true;
  }
  return false;
}

ov::op::RoundingType rounding(const CallView& view) {
  return reaches_beyond(view) ? ov::op::RoundingType::CEIL_TORCH : ov::op::RoundingType::FLOOR;
}

Result<ov::OutputVector> convert_max_pool(const CallView& view) {
  const Ints& padding = view.attrs.ints("padding");
  auto pool = std::make_shared<ov::op::v14::MaxPool>(
      view[0], cast_ints<ov::Strides>(view.attrs.ints("strides")),
      cast_ints<ov::Strides>(view.attrs.ints("dilation")), pads_begin<ov::Shape>(padding),
      pads_end<ov::Shape>(padding), cast_ints<ov::Shape>(view.attrs.ints("pool_size")),
      rounding(view));
  return one(pool->output(0));
}

Result<ov::OutputVector> convert_avg_pool(const CallView& view) {
  const Ints &padding = view.attrs.ints("padding"), &dilation = view.attrs.ints("dilation");
  if (std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; }))
    return unsupported("average pooling with dilation {}", attr_to_string(dilation));
  if (reaches_beyond(view) && view.attrs.flag("count_include_pad"))
    return unsupported("ceil_mode beyond the padding with count_include_pad");
  return one(make<ov::op::v14::AvgPool>(
      view[0], cast_ints<ov::Strides>(view.attrs.ints("strides")), pads_begin<ov::Shape>(padding),
      pads_end<ov::Shape>(padding), cast_ints<ov::Shape>(view.attrs.ints("pool_size")),
      !view.attrs.flag("count_include_pad"), rounding(view)));
}

template <typename Reduce>
Result<ov::OutputVector> convert_global(const CallView& view) {
  Ints spatial;
  for (int64_t axis = 2; axis < view.rank(0); ++axis) spatial.push_back(axis);
  return one(make<Reduce>(view[0], ints(spatial), true));
}

}  // namespace

ConverterTable pool_converters() {
  return {
      {"nn.max_pool1d", kFloat | kByte, convert_max_pool},
      {"nn.max_pool2d", kFloat | kByte, convert_max_pool},
      {"nn.max_pool3d", kFloat | kByte, convert_max_pool},
      {"nn.avg_pool1d", kFloat, convert_avg_pool},
      {"nn.avg_pool2d", kFloat, convert_avg_pool},
      {"nn.avg_pool3d", kFloat, convert_avg_pool},
      {"nn.global_max_pool1d", kFloat, convert_global<ov::op::v1::ReduceMax>},
      {"nn.global_max_pool2d", kFloat, convert_global<ov::op::v1::ReduceMax>},
      {"nn.global_max_pool3d", kFloat, convert_global<ov::op::v1::ReduceMax>},
      {"nn.global_avg_pool1d", kFloat, convert_global<ov::op::v1::ReduceMean>},
      {"nn.global_avg_pool2d", kFloat, convert_global<ov::op::v1::ReduceMean>},
      {"nn.global_avg_pool3d", kFloat, convert_global<ov::op::v1::ReduceMean>},
  };
}

}  // namespace collage::openvino
