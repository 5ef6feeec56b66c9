// Chains of elementwise operators without an anchor, in every layout their tensors may have. Plain
// and channels-last tensors are merged into as few dimensions as the operands' broadcasting allows,
// which is what oneDNN's vector code needs.
#include <algorithm>

#include "backend/onednn/implementation.h"

namespace collage::onednn {

namespace {

Shape permuted(const Shape& shape, const Layout& layout) {
  if (layout.is_plain()) return shape;
  Shape result;
  for (int d : layout.order()) result.push_back(shape[static_cast<size_t>(d)]);
  return result;
}

// A constant's bytes in the order of that layout (without blocks).
Tensor reordered(const Operand& operand, const Layout& layout) {
  Tensor result = Tensor::empty(DType::kFloat32, permuted(operand.shape, layout));
  dnnl::memory from(plain_desc(operand.shape), engine(), const_cast<void*>(operand.constant.raw()));
  dnnl::memory to(desc_of(operand.shape, layout), engine(), result.raw());
  dnnl::reorder(from, to).execute(stream(), from, to);
  return result;
}

Result<Implementation> in_layout(const CompositePtr& composite, const Layout& layout) {
  const Shape& shape = composite->result;
  if (composite->inputs[0].is_constant()) return unsupported("onednn: a constant source");
  Encodings encodings(*composite);
  const Type type = composite->types.result;
  TRY(encodings.want(composite->inputs[0], layout, type));
  // What the parameters must look like, then the same steps over merged dimensions.
  auto forms = TRY(operand_forms(composite->steps, shape, layout, OperandUse::kPrimitive, type));
  TRY(encodings.want(composite->steps, forms));
  auto steps = std::make_shared<std::vector<Step>>(composite->steps);
  Desc running = desc_of(shape, layout, type);
  if (layout.blocks().empty()) {
    Shape inner = permuted(shape, layout);
    for (Step& step : *steps) {
      if (step.kind == Step::Kind::kEltwise) continue;
      if (step.operand.is_constant() && !layout.is_plain())
        step.operand.constant = reordered(step.operand, layout);
      step.operand.shape = permuted(step.operand.shape, layout);
    }
    std::vector<size_t> ends = mergeable_groups(*steps, inner);
    if (inner.empty()) {  // scalars
      inner = {1}, ends = {1};
      for (Step& step : *steps) step.operand.shape = {1};
    }
    *steps = TRY(merge_dims(*steps, inner, ends));
    Shape merged = merge_dims(inner, ends);
    // Broadcasting along the last dimensions only is fast over three dimensions.
    if (merged.size() == 2) {
      bool outer = std::any_of(steps->begin(), steps->end(), [&](const Step& step) {
        return step.kind == Step::Kind::kBinary && step.operand.shape[1] == 1 && merged[1] != 1;
      });
      if (outer) {
        merged.insert(merged.begin(), 1);
        for (Step& step : *steps)
          if (step.kind == Step::Kind::kBinary)
            step.operand.shape.insert(step.operand.shape.begin(), 1);
      }
    }
    running = plain_desc(merged, type);
    forms = TRY(operand_forms(*steps, merged, Layout(), OperandUse::kPrimitive, type));
  }
  auto stages = TRY(plan_chain(*steps, running, forms));
  auto build = [composite, steps, forms, stages, running]() {
    ProgramBuilder builder;
    Value source = builder.input(static_cast<size_t>(composite->inputs[0].param), running);
    append_chain(builder, stages, bind_operands(builder, *steps, forms), source,
                 builder.output(0, running));
    return builder.finish();
  };
  return Implementation{encodings.variant("chain", layout), std::move(build)};
}

}  // namespace

Result<std::vector<Implementation>> plan_elementwise(const CompositePtr& composite) {
  Implementations found;
  found.add(guarded("elementwise", [&] { return in_layout(composite, Layout()); }));
  // Rank 3 is a batch of sequences far more often than a one-dimensional image.
  if (auto rank = static_cast<int64_t>(composite->result.size()); rank >= 4)
    for (const Layout& layout : image_layouts(rank, composite->types.lowered()))
      found.add(guarded("elementwise", [&] { return in_layout(composite, layout); }));
  return found.take();
}

}  // namespace collage::onednn
