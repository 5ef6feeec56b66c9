// Softmax and layer normalisation: over the last dimension of plain tensors, where all dimensions
// before it are merged into rows; softmax over the channels also of images.
#include "backend/onednn/single.h"
#include "ir/op.h"

namespace collage::onednn {

namespace {

// The composite over (rows, last dimension).
Result<SingleSource> over_rows(const CompositePtr& composite, std::string name) {
  const Shape& shape = composite->anchor_shape;
  std::vector<size_t> ends = {shape.size() - 1, shape.size()};
  Shape merged = merge_dims(shape, ends);
  return SingleSource{std::move(name),
                      Layout(),
                      Layout(),
                      plain_desc(merged, composite->types.source),
                      plain_desc(merged, composite->types.result),
                      TRY(merge_dims(composite->steps, shape, ends)),
                      Layout(),
                      {}};
}

int64_t positive(int64_t axis, const Shape& shape) {
  return axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
}

}  // namespace

Result<std::vector<Implementation>> plan_softmax(const CompositePtr& composite) {
  const CallNode& call = *composite->anchor;
  const Shape& shape = composite->anchor_shape;
  if (shape.empty()) return unsupported("onednn: softmax of a scalar");
  auto algorithm = call.op->name == "nn.log_softmax" ? dnnl::algorithm::softmax_log
                                                     : dnnl::algorithm::softmax_accurate;
  int64_t axis = positive(call.attrs.integer("axis"), shape);
  auto make = [&](int dim) {
    return [algorithm, dim](const Desc& from, const Desc& to, const dnnl::primitive_attr& attr) {
      return dnnl::softmax_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference,
                                                   algorithm, from, to, dim, attr);
    };
  };
  Implementations found;
  if (axis + 1 == static_cast<int64_t>(shape.size())) {
    found.add(single_source(composite, TRY(over_rows(composite, "softmax")), make(1)));
  } else {
    for (const Layout& layout :
         image_layouts(static_cast<int64_t>(shape.size()), composite->types.lowered()))
      found.add(single_source(composite, image_source(composite, "softmax", layout, shape),
                              make(static_cast<int>(axis))));
  }
  return found.take();
}

Result<std::vector<Implementation>> plan_layer_norm(const CompositePtr& composite) {
  const CallNode& call = *composite->anchor;
  const Shape& shape = composite->anchor_shape;
  if (composite->inputs.size() != 3 || !composite->inputs[1].is_constant() ||
      !composite->inputs[2].is_constant())
    return unsupported("onednn: layer_norm needs a constant scale and shift");
  if (positive(call.attrs.integer("axis"), shape) + 1 != static_cast<int64_t>(shape.size()))
    return unsupported("onednn: layer_norm over another dimension than the last");
  SingleSource plan = TRY(over_rows(composite, "layer_norm"));
  plan.extra = [composite](ProgramBuilder& builder, Bindings& bindings) {
    Desc desc({composite->anchor_shape.back()}, kFloat, Tag::a);
    bindings.push_back(
        {DNNL_ARG_SCALE, builder.constant(composite->inputs[1].constant, desc, desc)});
    bindings.push_back(
        {DNNL_ARG_SHIFT, builder.constant(composite->inputs[2].constant, desc, desc)});
  };
  auto epsilon = static_cast<float>(call.attrs.real("epsilon"));
  Implementations found;
  found.add(single_source(composite, std::move(plan),
                          [&](const Desc& from, const Desc& to, const dnnl::primitive_attr& attr) {
                            using Flags = dnnl::normalization_flags;
                            return dnnl::layer_normalization_forward::primitive_desc(
                                engine(), dnnl::prop_kind::forward_inference, from, to, epsilon,
                                Flags::use_scale | Flags::use_shift, attr);
                          }));
  return found.take();
}

}  // namespace collage::onednn
