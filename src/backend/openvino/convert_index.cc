// Operators that read and write by index, and those along an axis that give positions. An index out
// of range is an error by our operators' definition; OpenVINO's give zeros, so the kernel checks
// indices that come from outside (see kernel.h).
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

Result<ov::OutputVector> convert_take(const CallView& view) {
  const int64_t axis = view.axis("axis", view.rank(0));
  const Shape& shape = view.shape(0);
  const bool alone = num_elements(Shape(shape.begin() + axis + 1, shape.end())) == 1;
  if (alone && is_integer(view.type(0).dtype) && dtype_size(view.type(0).dtype) == 1)
    return unsupported("bytes taken one by one, behind the last of which it reads");
  return one(make<ov::op::v8::Gather>(view[0], view[1], int_scalar(axis)));
}

Result<ov::OutputVector> convert_gather(const CallView& view) {
  return one(make<ov::op::v6::GatherElements>(view[0], view[1], view.axis("axis", view.rank(0))));
}

Result<ov::OutputVector> convert_gather_nd(const CallView& view) {
  return one(make<ov::op::v8::GatherND>(view[0], view[1],
                                        static_cast<size_t>(view.attrs.integer("batch_dims"))));
}

Result<ov::OutputVector> convert_scatter_elements(const CallView& view) {
  using Reduction = ov::op::v12::ScatterElementsUpdate::Reduction;
  const std::string& name = view.attrs.string("reduction");
  Reduction reduction = name == "add"   ? Reduction::SUM
                        : name == "mul" ? Reduction::PROD
                        : name == "min" ? Reduction::MIN
                        : name == "max" ? Reduction::MAX
                                        : Reduction::NONE;
  return one(make<ov::op::v12::ScatterElementsUpdate>(
      view[0], view[1], view[2], int_scalar(view.axis("axis", view.rank(0))), reduction));
}

Result<ov::OutputVector> convert_scatter_nd(const CallView& view) {
  using Reduction = ov::op::v15::ScatterNDUpdate::Reduction;
  const std::string& name = view.attrs.string("mode");
  Reduction reduction = name == "add"   ? Reduction::SUM
                        : name == "mul" ? Reduction::PROD
                        : name == "min" ? Reduction::MIN
                        : name == "max" ? Reduction::MAX
                                        : Reduction::NONE;
  return one(make<ov::op::v15::ScatterNDUpdate>(view[0], view[1], view[2], reduction));
}

// An index out of range is no error here, so those of 64 bits are clipped before they are 32.
Result<ov::OutputVector> convert_one_hot(const CallView& view) {
  const auto depth = view.attrs.integer("depth");
  Value indices = view[0];
  if (view.type(0).dtype == DType::kInt64) {
    if (depth >= 1 << 24) return unsupported("depth {}, which float32 may not hold", depth);
    const Value real = make<ov::op::v0::Convert>(indices, ov::element::f32);
    const auto last = static_cast<double>(depth);
    const Value clipped = make<ov::op::v0::Clamp>(real, -last - 1, last);
    indices = make<ov::op::v0::Convert>(clipped, ov::element::i32);
  }
  return one(make<ov::op::v16::OneHot>(indices, int_scalar(depth), reshaped(view[1], {}),
                                       reshaped(view[2], {}), view.attrs.integer("axis"),
                                       ov::op::v16::OneHot::NegativeIndicesMode::NORMALIZE));
}

Result<ov::OutputVector> convert_cumsum(const CallView& view) {
  return one(make<ov::op::v0::CumSum>(view[0], int_scalar(view.axis("axis", view.rank(0))),
                                      view.attrs.flag("exclusive"), view.attrs.flag("reverse")));
}

// Ours is always sorted and keeps the order of equal elements. OpenVINO keeps it by sorting with k
// comparisons an element, a hundred times what others take for large k.
Result<ov::OutputVector> convert_topk(const CallView& view) {
  constexpr int64_t kMost = 8, kFew = 64;
  const int64_t axis = view.axis("axis", view.rank(0)), k = view.attrs.integer("k");
  if (k > kMost && view.shape(0)[static_cast<size_t>(axis)] > kFew)
    return unsupported("the first {} of {}, which take it k comparisons each", k,
                       view.shape(0)[static_cast<size_t>(axis)]);
  return std::make_shared<ov::op::v11::TopK>(
             view[0], int_scalar(k), axis,
             view.attrs.flag("largest") ? ov::op::TopKMode::MAX : ov::op::TopKMode::MIN,
             ov::op::TopKSortType::SORT_VALUES, ov::element::i64, true)
      ->outputs();
}

}  // namespace

ConverterTable index_converters() {
  return {
      {"take", kAny, convert_take, 1},
      {"gather", kAny, convert_gather, 1},
      {"gather_nd", kAny, convert_gather_nd, 1},
      {"scatter_elements", kNumber, convert_scatter_elements, 1},
      {"scatter_nd", kNumber, convert_scatter_nd, 1},
      {"one_hot", kNumber | kBool, convert_one_hot, 0},
      {"cumsum", kFloat, convert_cumsum},
      {"topk", kNumber, convert_topk, 2},
  };
}

}  // namespace collage::openvino
