// qnn.dequantize with one scale and zero point: reorders, which may change the layout as they go.
// That is what stands between products of integers, which want channels last, and float32 images.
//
// Not qnn.quantize: its reorder multiplies by the reciprocal of the scale, adds the zero point and
// rounds then. Numbers in the middle of two integers become the wrong one by that, and what leaves
// 32 bits the least.
#include "backend/onednn/implementation.h"
#include "backend/onednn/quantised.h"
#include "ir/op.h"

namespace collage::onednn {

namespace {

Result<Implementation> reorder(const CompositePtr& composite, const Layout& from,
                               const Layout& to) {
  const Shape& shape = composite->result;
  const CallNode& call = *composite->anchor;
  const auto values =
      attribute_values(DNNL_ARG_FROM, TRY(quantisation_of(call.args[1], call.args[2])));
  const Desc source = desc_of(shape, from, composite->types.source),
             target = desc_of(shape, to, composite->types.result);
  Encodings encodings(*composite);
  TRY(encodings.want(composite->inputs[0], from, composite->types.source));
  dnnl::reorder::primitive_desc pd(engine(), source, engine(), target,
                                   attributes({}, masks_of(values)));
  if (is_naive(pd.impl_info_str())) return unsupported("onednn: only a naive implementation");
  auto build = [composite, values, source, target, pd]() {
    ProgramBuilder builder;
    auto param = static_cast<size_t>(composite->inputs[0].param);
    Bindings bindings = {{DNNL_ARG_FROM, builder.input(param, source)},
                         {DNNL_ARG_TO, builder.output(0, target)}};
    bind_attribute_values(builder, values, bindings);
    builder.add(pd, bindings, masks_of(values));
    return builder.finish();
  };
  return Implementation{encodings.variant("reorder", to), std::move(build)};
}

}  // namespace

Result<std::vector<Implementation>> plan_quantisation(const CompositePtr& composite) {
  if (composite->inputs[0].is_constant()) return unsupported("onednn: a constant source");
  if (!composite->steps.empty()) return unsupported("onednn: nothing follows a conversion");
  const auto rank = static_cast<int64_t>(composite->result.size());
  const Layout last = Layout::channels_last(rank);
  Implementations found;
  auto add = [&](const Layout& from, const Layout& to) {
    found.add(guarded("quantisation", [&] { return reorder(composite, from, to); }));
  };
  add(Layout(), Layout());
  if (rank >= 4 && rank <= 5) {
    add(last, last);
    add(Layout(), last);
    add(last, Layout());
  }
  return found.take();
}

}  // namespace collage::onednn
