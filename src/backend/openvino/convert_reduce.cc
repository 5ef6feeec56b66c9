// Reductions over axes, argmax and argmin.
#include <openvino/op/convert.hpp>
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"
#include "ops/reduce.h"

namespace collage::openvino {

namespace {

template <typename Reduce>
Result<ov::OutputVector> convert_reduction(const CallView& view) {
  Ints axes = TRY(reduced_axes(view.attrs, view.rank(0)));
  if (axes.empty()) return one(view[0]);
  return one(make<Reduce>(view[0], ints(axes), view.attrs.flag("keepdims")));
}

// The first of equal elements is the one TopK's stable order puts first.
template <ov::op::TopKMode mode>
Result<ov::OutputVector> convert_arg(const CallView& view) {
  if (view.attrs.flag("select_last_index")) return unsupported("select_last_index");
  auto topk = std::make_shared<ov::op::v11::TopK>(
      view[0], int_scalar(1), view.axis("axis", view.rank(0)), mode,
      ov::op::TopKSortType::SORT_VALUES, ov::element::i64, true);
  return one(reshaped(topk->output(1), view.result().shape));
}

}  // namespace

ConverterTable reduce_converters() {
  namespace op = ov::op;
  return {
      {"sum", kFloat, convert_reduction<op::v1::ReduceSum>},
      {"mean", kFloat, convert_reduction<op::v1::ReduceMean>},
      {"max", kFloat, convert_reduction<op::v1::ReduceMax>},
      {"min", kFloat, convert_reduction<op::v1::ReduceMin>},
      {"prod", kFloat, convert_reduction<op::v1::ReduceProd>},
      {"all", kBool, convert_reduction<op::v1::ReduceLogicalAnd>},
      {"any", kBool, convert_reduction<op::v1::ReduceLogicalOr>},
      {"argmax", kNumber, convert_arg<op::TopKMode::MAX>, 1},
      {"argmin", kNumber, convert_arg<op::TopKMode::MIN>, 1},
  };
}

}  // namespace collage::openvino
