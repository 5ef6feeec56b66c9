// Common parts of families with one source tensor: the anchor between one described source and one
// described result, and the chain that follows.
#pragma once

#include "backend/onednn/implementation.h"

namespace collage::onednn {

struct SingleSource {
  std::string name;               // of the variant
  Layout source, result;          // what the variant's encodings say
  Desc source_desc, result_desc;  // what oneDNN is told; may merge dimensions
  std::vector<Step> steps;        // over the dimensions of result_desc
  Layout running;                 // the layout of result_desc (plain when dimensions are merged)
  // Adds bindings of further constants.
  std::function<void(ProgramBuilder&, Bindings&)> extra;
};

// `make(source, result, attributes)` returns the primitive descriptor.
template <typename Make>
Result<Implementation> single_source(const CompositePtr& composite, SingleSource plan, Make make) {
  const Operand& input = composite->inputs[0];
  if (input.is_constant()) return unsupported("onednn: a constant source");
  auto shared = std::make_shared<const SingleSource>(std::move(plan));
  auto anchored = TRY(plan_anchor(
      shared->steps, shared->result_desc.get_dims(), shared->running,
      [&](const dnnl::primitive_attr& attr) {
        return make(shared->source_desc, shared->result_desc, attr);
      },
      composite->types.result));
  Encodings encodings(*composite);
  TRY(encodings.want(input, shared->source, composite->types.source));
  TRY(encodings.want(shared->steps, anchored.tail.forms));
  auto build = [composite, shared, anchored]() {
    ProgramBuilder builder;
    auto param = static_cast<size_t>(composite->inputs[0].param);
    Bindings bindings = {{DNNL_ARG_SRC, builder.input(param, shared->source_desc)}};
    if (shared->extra) shared->extra(builder, bindings);
    append_anchor(builder, anchored, std::move(bindings), shared->result_desc);
    return builder.finish();
  };
  return Implementation{encodings.variant(shared->name, shared->result), std::move(build)};
}

// Source and result of equal layout, no dimension merged.
inline SingleSource image_source(const CompositePtr& composite, std::string name,
                                 const Layout& layout, const Shape& result) {
  return {std::move(name),
          layout,
          layout,
          desc_of(composite->inputs[0].shape, layout, composite->types.source),
          desc_of(result, layout, composite->types.result),
          composite->steps,
          layout,
          {}};
}

}  // namespace collage::onednn
