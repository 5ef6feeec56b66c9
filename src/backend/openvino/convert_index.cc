// Operators that read and write by index, and those along an axis that give positions. An index out
// of range is an error by our operators' definition; OpenVINO's give zeros, so the kernel checks
// indices that come from outside (see kernel.h).
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

Result<ov::OutputVector> convert_take(const CallView& view) {
  return one(
      make<ov::op::v8::Gather>(view[0], view[1], int_scalar(view.axis("axis", view.rank(0)))));
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

Result<ov::OutputVector> convert_one_hot(const CallView& view) {
  return one(make<ov::op::v16::OneHot>(view[0], int_scalar(view.attrs.integer("depth")),
                                       reshaped(view[1], {}), reshaped(view[2], {}),
                                       view.attrs.integer("axis"),
                                       ov::op::v16::OneHot::NegativeIndicesMode::NORMALIZE));
}

Result<ov::OutputVector> convert_cumsum(const CallView& view) {
  return one(make<ov::op::v0::CumSum>(view[0], int_scalar(view.axis("axis", view.rank(0))),
                                      view.attrs.flag("exclusive"), view.attrs.flag("reverse")));
}

// Ours is always sorted and keeps the order of equal elements.
Result<ov::OutputVector> convert_topk(const CallView& view) {
  return std::make_shared<ov::op::v11::TopK>(
             view[0], int_scalar(view.attrs.integer("k")), view.axis("axis", view.rank(0)),
             view.attrs.flag("largest") ? ov::op::TopKMode::MAX : ov::op::TopKMode::MIN,
             ov::op::TopKSortType::SORT_VALUES, ov::element::i64, true)
      ->outputs();
}

}  // namespace

ConverterTable index_converters() {
  return {
      {"take", kAny, convert_take},
      {"gather", kAny, convert_gather},
      {"gather_nd", kAny, convert_gather_nd},
      {"scatter_elements", kNumber, convert_scatter_elements},
      {"scatter_nd", kNumber, convert_scatter_nd},
      {"one_hot", kNumber | kBool, convert_one_hot},
      {"cumsum", kFloat, convert_cumsum},
      {"topk", kFloat | kInt, convert_topk},
  };
}

}  // namespace collage::openvino
