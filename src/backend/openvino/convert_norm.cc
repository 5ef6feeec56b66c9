// Softmax and normalisations. Layer and instance normalisation are MVN (mean and variance
// normalisation) with scale and shift, which the CPU plugin fuses; root mean square is spelled out
// the way its own fusion expects.
#include <algorithm>
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

Result<ov::OutputVector> convert_softmax(const CallView& view) {
  return one(make<ov::op::v8::Softmax>(view[0], view.axis("axis", view.rank(0))));
}

Result<ov::OutputVector> convert_log_softmax(const CallView& view) {
  return one(make<ov::op::v5::LogSoftmax>(view[0], view.axis("axis", view.rank(0))));
}

Ints axes_from(int64_t first, int64_t rank) {
  Ints axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Value mean_variance(const Value& data, const Ints& axes, double epsilon) {
  return make<ov::op::v6::MVN>(data, ints(axes), true, static_cast<float>(epsilon),
                               ov::op::MVNEpsMode::INSIDE_SQRT);
}

Value scale_and_shift(const Value& data, const Value& scale, const Value& shift) {
  return make<ov::op::v1::Add>(make<ov::op::v1::Multiply>(data, scale), shift);
}

Result<ov::OutputVector> convert_layer_norm(const CallView& view) {
  Ints axes = axes_from(view.axis("axis", view.rank(0)), view.rank(0));
  Value normal = mean_variance(view[0], axes, view.attrs.real("epsilon"));
  return one(scale_and_shift(normal, view[1], view[2]));
}

Result<ov::OutputVector> convert_rms_norm(const CallView& view) {
  const Value& x = view[0];
  Ints axes = axes_from(view.axis("axis", view.rank(0)), view.rank(0));
  Value squares = make<ov::op::v1::Power>(x, scalar(2, x));
  Value mean = make<ov::op::v1::ReduceMean>(squares, ints(axes), true);
  Value shifted = make<ov::op::v1::Add>(mean, scalar(view.attrs.real("epsilon"), x));
  Value factor = make<ov::op::v1::Divide>(scalar(1, x), make<ov::op::v0::Sqrt>(shifted));
  return one(make<ov::op::v1::Multiply>(view[1], make<ov::op::v1::Multiply>(x, factor)));
}

Result<ov::OutputVector> convert_instance_norm(const CallView& view) {
  int64_t rank = view.rank(0);
  if (rank < 3) return unsupported("instance normalisation of rank {}", rank);
  Value normal = mean_variance(view[0], axes_from(2, rank), view.attrs.real("epsilon"));
  return one(scale_and_shift(normal, along_axis(view[1], 1, rank), along_axis(view[2], 1, rank)));
}

Result<ov::OutputVector> convert_group_norm(const CallView& view) {
  return one(make<ov::op::v12::GroupNormalization>(
      view[0], view[1], view[2], view.attrs.integer("num_groups"), view.attrs.real("epsilon")));
}

// The tuple of Relay's: the normalised data and the statistics, unchanged.
Result<ov::OutputVector> convert_batch_norm(const CallView& view) {
  int64_t axis = view.axis("axis", view.rank(0));
  if (axis != 1) return unsupported("batch normalisation on axis {}", axis);
  Value normal = make<ov::op::v5::BatchNormInference>(view[0], view[1], view[2], view[3], view[4],
                                                      view.attrs.real("epsilon"));
  return ov::OutputVector{normal, view[3], view[4]};
}

Result<ov::OutputVector> convert_lrn(const CallView& view) {
  if (view.attrs.integer("size") % 2 == 0)
    return unsupported("an even size, {}", view.attrs.integer("size"));
  return one(make<ov::op::v0::LRN>(view[0], ints({view.axis("axis", view.rank(0))}),
                                   view.attrs.real("alpha"), view.attrs.real("beta"),
                                   view.attrs.real("bias"),
                                   static_cast<size_t>(view.attrs.integer("size"))));
}

Result<ov::OutputVector> convert_l2_normalize(const CallView& view) {
  return one(make<ov::op::v0::NormalizeL2>(view[0], ints(view.axes("axis", view.rank(0))),
                                           static_cast<float>(view.attrs.real("eps")),
                                           ov::op::EpsMode::MAX));
}

}  // namespace

ConverterTable norm_converters() {
  return {
      {"nn.softmax", kFloat, convert_softmax},
      {"nn.log_softmax", kFloat, convert_log_softmax},
      {"nn.layer_norm", kFloat, convert_layer_norm},
      {"nn.rms_norm", kFloat, convert_rms_norm},
      {"nn.instance_norm", kFloat, convert_instance_norm},
      {"nn.group_norm", kFloat, convert_group_norm},
      {"nn.batch_norm", kFloat, convert_batch_norm},
      {"nn.lrn", kFloat, convert_lrn},
      {"nn.l2_normalize", kFloat, convert_l2_normalize},
  };
}

}  // namespace collage::openvino
