#include "backend/amx/strided_view.h"

#include "ir/op.h"
#include "ops/rearrange.h"
#include "ops/strided.h"
#include "ops/type_rules.h"

namespace collage::amx {
namespace {

/// The strides of the same elements, in row-major order, under another shape: where each run of
/// dimensions that are taken together lies evenly.
Result<Ints> reshaped_strides(const Shape& from, const Ints& strides, const Shape& to) {
  Ints result(to.size(), 0);
  for (size_t i = 0, j = 0; j < to.size();) {
    // The shortest runs of equal product.
    size_t i_end = i, j_end = j + 1;
    int64_t from_count = 1, to_count = to[j];
    while (from_count != to_count) {
      if (from_count < to_count)
        from_count *= from[i_end++];
      else
        to_count *= to[j_end++];
    }
    int64_t stride = 0, run = 1;  // of the run so far, from its last dimension on
    for (size_t d = i_end; d-- > i;) {
      if (from[d] == 1) continue;
      if (run == 1)
        stride = strides[d];
      else if (strides[d] != stride * run)
        return unsupported("a reshape of elements that lie apart");
      run *= from[d];
    }
    int64_t step = stride;
    for (size_t d = j_end; d-- > j; step *= to[d]) result[d] = step;
    i = i_end;
    j = j_end;
  }
  return result;
}

}  // namespace

Result<StridedView> read_strided(const Expr& expr,
                                 const std::function<bool(const Expr&)>& is_source) {
  if (is_source(expr)) return StridedView{expr, 0, dense_strides(expr->tensor_type().shape)};
  if (const auto* part = as<TupleGetItemNode>(expr)) {
    const CallNode* split = as_op(part->tuple, "split");
    if (split == nullptr) return unsupported("a part of what is no split");
    StridedView view = TRY(read_strided(split->args[0], is_source));
    const auto axis = static_cast<size_t>(
        normal_axis(split->attrs.integer("axis"), static_cast<int64_t>(view.strides.size())));
    for (size_t before = 0; before < static_cast<size_t>(part->index); ++before)
      view.offset += split->type().fields()[before].tensor().shape[axis] * view.strides[axis];
    return view;
  }
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op == nullptr)
    return unsupported("an operand that is computed or constant");
  const bool reads_one = call->args.size() == 1 && call->args[0]->type().is_tensor();
  if (!reads_one ||
      !(call->op->is_view || call->op->name == "transpose" || call->op->name == "strided_slice"))
    return unsupported("{} in front of attention", call->op->name);
  const Shape& from = call->args[0]->tensor_type().shape;
  StridedView view = TRY(read_strided(call->args[0], is_source));
  if (call->op->is_view) {
    view.strides = TRY(reshaped_strides(from, view.strides, call->tensor_type().shape));
  } else if (call->op->name == "transpose") {
    const std::optional<Ints> axes = TRY(optional_ints(call->attrs, "axes"));
    const Ints before = view.strides;
    for (size_t d = 0; d < before.size(); ++d)
      view.strides[d] = before[axes ? static_cast<size_t>(normal_axis(
                                          (*axes)[d], static_cast<int64_t>(before.size())))
                                    : before.size() - 1 - d];
  } else {
    for (const SliceRange& range : TRY(slice_ranges(from, call->attrs))) {
      const auto d = static_cast<size_t>(range.axis);
      view.offset += range.begin * view.strides[d];
      view.strides[d] *= range.step;
    }
  }
  return view;
}

}  // namespace collage::amx
