// Operators that move elements without computing: concatenation, transposition, slices and padding
// with zeros. The latter three are reorders between views of the tensors.
#include <algorithm>

#include "backend/onednn/implementation.h"
#include "ir/op.h"
#include "ops/rearrange.h"

namespace collage::onednn {

namespace {

int64_t positive(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

Result<Implementation> concat_in(const CompositePtr& composite, const Layout& layout, size_t axis) {
  const Shape& result = composite->anchor_shape;
  // Plain tensors are rows of what lies along and inside the axis.
  bool merge = layout.is_plain();
  std::vector<size_t> ends = {axis, result.size()};
  Shape target = merge ? merge_dims(result, ends) : result;
  std::vector<Desc> sources;
  Encodings encodings(*composite);
  for (const Operand& input : composite->inputs) {
    TRY(encodings.want(input, layout, composite->types.source));
    if (!layout.blocks().empty() && axis == 1 && input.shape[1] % layout.blocks()[0].size != 0)
      return unsupported("onednn: channels that do not fill their blocks");
    sources.push_back(desc_of(merge ? merge_dims(input.shape, ends) : input.shape, layout,
                              composite->types.source));
  }
  Result<std::vector<Step>> steps = merge ? merge_dims(composite->steps, result, ends)
                                          : Result<std::vector<Step>>(composite->steps);
  if (!steps.ok()) return steps.status();
  Desc to = desc_of(target, layout, composite->types.result);
  int dim = merge ? 1 : static_cast<int>(axis);
  auto own_steps = std::make_shared<const std::vector<Step>>(std::move(*steps));
  auto forms = TRY(
      operand_forms(*own_steps, target, layout, OperandUse::kPrimitive, composite->types.result));
  TRY(encodings.want(*own_steps, forms));
  auto stages = TRY(plan_chain(*own_steps, to, forms));
  dnnl::concat::primitive_desc pd(engine(), to, dim, sources, attributes());
  auto build = [composite, own_steps, forms, stages, pd, sources, to]() {
    ProgramBuilder builder;
    Bindings bindings;
    for (size_t i = 0; i < sources.size(); ++i) {
      const Operand& input = composite->inputs[i];
      Value value =
          input.is_constant()
              ? builder.constant(input.constant, plain_desc(sources[i].get_dims(), input.type),
                                 sources[i])
              : builder.input(static_cast<size_t>(input.param), sources[i]);
      bindings.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), value});
    }
    Value output = builder.output(0, to);
    bindings.push_back({DNNL_ARG_DST, output});
    builder.add(pd, bindings);
    append_chain(builder, stages, bind_operands(builder, *own_steps, forms), output, output);
    return builder.finish();
  };
  return Implementation{encodings.variant("concat", layout), std::move(build)};
}

// One reorder from a view of the source to a view of the result, the rest of which is zeroed.
Result<Implementation> reorder(const CompositePtr& composite, std::string name, const Layout& from,
                               const Layout& to, const Desc& source, const Desc& target,
                               size_t source_offset, size_t zeroed_bytes) {
  if (!composite->steps.empty()) return unsupported("onednn: nothing follows a copy");
  Encodings encodings(*composite);
  TRY(encodings.want(composite->inputs[0], from, composite->types.source));
  dnnl::reorder::primitive_desc pd(engine(), source, engine(), target, attributes());
  if (is_naive(pd.impl_info_str())) return unsupported("onednn: only a naive implementation");
  auto build = [composite, pd, source, target, source_offset, zeroed_bytes]() {
    ProgramBuilder builder;
    if (zeroed_bytes > 0) builder.clear_output(0, zeroed_bytes);
    auto param = static_cast<size_t>(composite->inputs[0].param);
    builder.add(pd, {{DNNL_ARG_FROM, builder.input(param, source, source_offset)},
                     {DNNL_ARG_TO, builder.output(0, target)}});
    return builder.finish();
  };
  return Implementation{encodings.variant(std::move(name), to), std::move(build)};
}

Result<Implementation> transpose(const CompositePtr& composite) {
  const Shape &source = composite->inputs[0].shape, &result = composite->anchor_shape;
  const AttrValue* given = composite->anchor->attrs.find("axes");
  Ints axes;
  if (given != nullptr && std::holds_alternative<Ints>(*given)) axes = std::get<Ints>(*given);
  for (size_t d = axes.size(); d < source.size(); ++d)
    axes.push_back(static_cast<int64_t>(source.size() - 1 - d));
  if (source.empty() || source.size() > DNNL_MAX_NDIMS) return unsupported("onednn: rank");
  const Type type = composite->types.source;
  Dims dense = plain_desc(source).get_strides(), strides;
  for (int64_t axis : axes)
    strides.push_back(dense[static_cast<size_t>(positive(axis, axes.size()))]);
  return reorder(composite, "transpose", Layout(), Layout(), Desc(result, type, strides),
                 plain_desc(result, type), 0, 0);
}

Result<Implementation> slice(const CompositePtr& composite, const Layout& layout) {
  const Shape &source = composite->inputs[0].shape, &result = composite->anchor_shape;
  Dims offsets(source.size(), 0);
  const Type type = composite->types.source;
  Desc whole = desc_of(source, layout, type);
  Dims strides = whole.get_strides();
  bool stepped = false;
  for (const SliceRange& range : TRY(slice_ranges(source, composite->anchor->attrs))) {
    if (range.step < 1) return unsupported("onednn: a slice backwards");
    auto axis = static_cast<size_t>(range.axis);
    offsets[axis] = range.begin;
    strides[axis] *= range.step;
    stepped |= range.step > 1;
  }
  if (!layout.blocks().empty()) {
    if (stepped) return unsupported("onednn: a slice with steps of a blocked tensor");
    return reorder(composite, "slice", layout, layout, whole.submemory_desc(result, offsets),
                   desc_of(result, layout, type), 0, 0);
  }
  int64_t offset = 0;
  for (size_t d = 0; d < offsets.size(); ++d) offset += offsets[d] * whole.get_strides()[d];
  return reorder(composite, "slice", layout, layout, Desc(result, type, strides),
                 desc_of(result, layout, type),
                 static_cast<size_t>(offset) * dnnl::memory::data_type_size(type), 0);
}

Result<Implementation> pad(const CompositePtr& composite, const Layout& layout) {
  const Attrs& attrs = composite->anchor->attrs;
  const Shape &source = composite->inputs[0].shape, &result = composite->anchor_shape;
  if (composite->inputs.size() > 1 && composite->inputs[1].scalar() != 0.f)
    return unsupported("onednn: padding with another value than zero");
  if (attrs.string("pad_mode") != "constant") return unsupported("onednn: padding by reflection");
  Dims offsets;
  for (const Ints& pair : attrs.int_lists("pad_width")) {
    if (pair[0] < 0 || pair[1] < 0) return unsupported("onednn: negative padding");
    offsets.push_back(pair[0]);
  }
  const Type type = composite->types.source;
  Desc whole = desc_of(result, layout, type);
  return reorder(composite, "pad", layout, layout, desc_of(source, layout, type),
                 whole.submemory_desc(source, offsets), 0, whole.get_size());
}

}  // namespace

Result<std::vector<Implementation>> plan_concat(const CompositePtr& composite) {
  const Shape& result = composite->anchor_shape;
  auto axis =
      static_cast<size_t>(positive(composite->anchor->attrs.integer("axis"), result.size()));
  Implementations found;
  for (const Layout& layout :
       image_layouts(static_cast<int64_t>(result.size()), composite->types.lowered()))
    found.add(guarded("concatenate", [&] { return concat_in(composite, layout, axis); }));
  return found.take();
}

Result<std::vector<Implementation>> plan_copy(const CompositePtr& composite) {
  std::string_view op = composite->anchor->op->name;
  if (composite->inputs[0].is_constant()) return unsupported("onednn: a constant source");
  if (composite->inputs[0].shape.empty()) return unsupported("onednn: a copy of a scalar");
  Implementations found;
  if (op == "transpose") {
    found.add(guarded(op, [&] { return transpose(composite); }));
    return found.take();
  }
  for (const Layout& layout :
       image_layouts(static_cast<int64_t>(composite->inputs[0].shape.size())))
    found.add(guarded(
        op, [&] { return op == "nn.pad" ? pad(composite, layout) : slice(composite, layout); }));
  return found.take();
}

}  // namespace collage::onednn
