// Convolutions of one to three dimensions, grouped and depthwise included, and transposed ones.
//
// Variants: the direct algorithm in the layouts that oneDNN prefers, channels last and channels in
// blocks of a vector, from plain where it reads few channels (stems); of integers channels last,
// which is all that oneDNN has code for; Winograd where it is one. The two Winograd implementations
// (tiles of 2x2 and of 4x4) win on different shapes and are offered both. The product-based
// implementation for plain layouts is two to four times slower than any of these here and stands in
// only where there is nothing else.
#include <numeric>

#include "backend/onednn/implementation.h"
#include "backend/onednn/quantised.h"
#include "ops/window.h"

namespace collage::onednn {

namespace {

struct ConvolutionProblem {
  CompositePtr composite;
  Types types;
  Shape source, result;  // of the anchor
  Dims weights;          // as oneDNN counts them: groups first where there are any
  Desc given_weights;    // how they lie in memory
  std::optional<Operand> bias;
  std::span<const Step> steps;  // after the bias
  Dims strides, dilates, pad_begin, pad_end;
  Tensor given;                         // the constant; undefined: weights are computed
  Type weights_type;                    // that the primitive reads
  std::vector<AttributeValues> values;  // of a product of integers
};

// A constant that varies along the channels only, added first, is the bias.
std::optional<Operand> leading_bias(const Composite& composite) {
  if (composite.steps.empty()) return std::nullopt;
  const Step& first = composite.steps.front();
  if (first.kind != Step::Kind::kBinary || first.algorithm != dnnl::algorithm::binary_add ||
      !first.operand.is_constant())
    return std::nullopt;
  const Shape& shape = first.operand.shape;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != (d == 1 ? composite.anchor_shape[1] : 1)) return std::nullopt;
  return first.operand;
}

Result<ConvolutionProblem> read_problem(const CompositePtr& composite, bool transposed) {
  const CallNode& call = *composite->anchor;
  if (composite->inputs[0].is_constant()) return unsupported("onednn: a convolution of a constant");
  ConvolutionProblem p;
  p.composite = composite;
  p.source = composite->inputs[0].shape;
  p.result = composite->anchor_shape;
  p.types = composite->types;
  const Shape& weights = composite->inputs[1].shape;
  Window window = known_window(call.attrs, Ints(weights.begin() + 2, weights.end()));
  p.strides = window.strides;
  p.pad_begin = window.pad_begin;
  for (size_t d = 0; d < window.rank(); ++d) {
    p.dilates.push_back(window.dilation[d] - 1);
    int64_t extent = (window.kernel[d] - 1) * window.dilation[d] + 1;
    int64_t in = transposed ? p.result[d + 2] : p.source[d + 2];
    int64_t out = transposed ? p.source[d + 2] : p.result[d + 2];
    p.pad_end.push_back((out - 1) * window.strides[d] + extent - in - window.pad_begin[d]);
  }
  int64_t groups = call.attrs.integer("groups");
  // (out, in / groups, …), or (in, out / groups, …) when transposed; oneDNN wants output first.
  p.weights = {groups, weights[0] / groups, weights[1]};
  Dims strides(weights.size(), 1);
  for (size_t d = weights.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * weights[d + 1];
  Dims given = {weights[0] / groups * strides[0], strides[0], strides[1]};
  if (transposed) std::swap(p.weights[1], p.weights[2]), std::swap(given[1], given[2]);
  p.weights.insert(p.weights.end(), weights.begin() + 2, weights.end());
  given.insert(given.end(), strides.begin() + 2, strides.end());
  if (groups == 1) p.weights.erase(p.weights.begin()), given.erase(given.begin());
  if (composite->inputs[1].is_constant()) p.given = composite->inputs[1].constant;
  p.weights_type = p.types.source;
  if (composite->quantised()) {
    const QuantisedProduct product = TRY(read_quantised(*composite));
    p.given = product.weights;
    p.weights_type = kSignedByte;
    p.values = product.attributes(groups == 1 ? 1 : 3);
  }
  const Type lies_as = composite->quantised() ? kSignedByte : kFloat;
  p.given_weights = Desc(p.weights, p.given.defined() ? lies_as : p.types.source, given);
  p.bias = leading_bias(*composite);
  p.steps = composite->steps;
  if (p.bias) p.steps = p.steps.subspan(1);
  return p;
}

// One layout choice; none lets oneDNN choose.
using Choice = std::optional<Layout>;
Desc chosen(const Shape& shape, const Choice& layout, Type type) {
  return layout ? desc_of(shape, *layout, type) : Desc(shape, type, Tag::any);
}

// `make(source, result, attributes)` gives the primitive descriptor. `winograd`: the side of tiles
// of the result by Winograd's algorithm, or 0.
template <typename Make>
Result<Implementation> implement(const std::shared_ptr<const ConvolutionProblem>& p,
                                 std::string name, const Choice& from, const Choice& to, Make make,
                                 int winograd = 0) {
  // oneDNN's own choice is asked for first, without post operations: the layouts it comes back with
  // decide the forms of the steps' operands.
  auto layouts = TRY(guarded("convolution", [&]() -> Result<std::pair<Layout, Layout>> {
    auto pd = make(chosen(p->source, from, p->types.source), chosen(p->result, to, p->types.result),
                   attributes({}, masks_of(p->values)));
    auto source = layout_of(pd.src_desc(), p->source);
    auto result = layout_of(pd.dst_desc(), p->result);
    if (!source || !result) return unsupported("onednn: a memory format that is no layout");
    return std::pair{*source, *result};
  }));
  auto [source, result] = layouts;
  // A layout that coincides with plain in memory is called plain; oneDNN still hears its own name.
  Desc source_desc = desc_of(p->source, from.value_or(source), p->types.source);
  Desc result_desc = desc_of(p->result, to.value_or(result), p->types.result);
  auto anchored = TRY(plan_anchor(
      p->steps, p->result, to.value_or(result),
      [&](const dnnl::primitive_attr& attr) { return make(source_desc, result_desc, attr); },
      p->types.result, masks_of(p->values)));
  Encodings encodings(*p->composite);
  TRY(encodings.want(p->composite->inputs[0], source, p->types.source));
  TRY(encodings.want(p->composite->inputs[1], Layout(), p->types.source));
  TRY(encodings.want(p->steps, anchored.tail.forms));
  auto build = [p, anchored, result_desc]() {
    const auto& pd = anchored.pd;
    ProgramBuilder builder;
    const auto input = [&](size_t i, const Desc& desc) {
      return builder.input(static_cast<size_t>(p->composite->inputs[i].param), desc);
    };
    const Value weights =
        p->given.defined()
            ? builder.constant(p->given, p->given_weights, pd.weights_desc())
            : reordered(builder, input(1, p->given_weights), p->given_weights, pd.weights_desc());
    Bindings bindings = {{DNNL_ARG_SRC, input(0, pd.src_desc())}, {DNNL_ARG_WEIGHTS, weights}};
    if (p->bias) {
      Desc bias({p->result[1]}, kFloat, Tag::a);
      bindings.push_back({DNNL_ARG_BIAS, builder.constant(p->bias->constant, bias, bias)});
    }
    bind_attribute_values(builder, p->values, bindings);
    append_anchor(builder, anchored, std::move(bindings), result_desc);
    return builder.finish();
  };
  Variant variant = encodings.variant(std::move(name), result);
  variant.weights = p->given.defined() ? weight_form(p->given_weights, anchored.pd.weights_desc())
                                       : kPlainWeights;
  if (winograd > 0) {
    variant.spreads_nan = true;
    variant.rounding = rounding::kWinograd4;
    variant.work = Work::of_winograd(winograd);
  }
  return Implementation{std::move(variant), std::move(build)};
}

template <typename Primitive>
auto maker(const std::shared_ptr<const ConvolutionProblem>& p, dnnl::algorithm algorithm) {
  return [p, algorithm](const Desc& source, const Desc& result, const dnnl::primitive_attr& attr) {
    constexpr auto kForward = dnnl::prop_kind::forward_inference;
    using PrimitiveDesc = typename Primitive::primitive_desc;
    Desc weights(p->weights, p->weights_type, Tag::any);
    if (!p->bias)
      return PrimitiveDesc(engine(), kForward, algorithm, source, weights, result, p->strides,
                           p->dilates, p->pad_begin, p->pad_end, attr);
    Desc bias({p->result[1]}, kFloat, Tag::a);
    return PrimitiveDesc(engine(), kForward, algorithm, source, weights, bias, result, p->strides,
                         p->dilates, p->pad_begin, p->pad_end, attr);
  };
}

// Winograd's two implementations come one after the other in oneDNN's list.
auto winograd_maker(const std::shared_ptr<const ConvolutionProblem>& p,
                    std::string_view implementation) {
  return
      [base = maker<dnnl::convolution_forward>(p, dnnl::algorithm::convolution_winograd),
       implementation](const Desc& source, const Desc& result, const dnnl::primitive_attr& attr) {
        auto pd = base(source, result, attr);
        while (std::string_view(pd.impl_info_str()).find(implementation) == std::string_view::npos)
          if (!pd.next_impl()) throw dnnl::error(dnnl_unimplemented, "no such implementation");
        return pd;
      };
}

bool may_be_winograd(const ConvolutionProblem& p) {
  if (p.weights.size() != 4) return false;
  for (size_t d = 0; d < 2; ++d)
    if (p.weights[d + 2] != 3 || p.strides[d] != 1 || p.dilates[d] != 0) return false;
  return true;
}

}  // namespace

Result<std::vector<Implementation>> plan_convolution(const CompositePtr& composite) {
  auto p = std::make_shared<const ConvolutionProblem>(TRY(read_problem(composite, false)));
  auto rank = static_cast<int64_t>(p->source.size());
  Layout last = Layout::channels_last(rank);
  Layout blocked = Layout::channels_blocked(rank, vector_block());
  Implementations found;
  auto make = maker<dnnl::convolution_forward>(p, dnnl::algorithm::convolution_direct);
  auto direct = [&](const Choice& from, const Choice& to) {
    return implement(p, "direct", from, to, make);
  };
  if (composite->quantised()) found.add(direct(std::nullopt, std::nullopt));
  if (composite->quantised() || p->types.lowered()) {
    found.add(direct(last, last));
    return found.take();
  }
  if (may_be_winograd(*p)) {
    for (auto [side, tile] : {std::pair{4, "wino_4x3"}, {2, "wino_2x3"}})
      found.add(implement(p, "winograd" + std::to_string(side), blocked, blocked,
                          winograd_maker(p, tile), side));
  }
  found.add(direct(std::nullopt, std::nullopt));
  found.add(direct(last, last));
  found.add(direct(blocked, blocked));
  if (p->source[1] <= 4) found.add(direct(Layout(), blocked));
  Result<std::vector<Implementation>> list = found.take();
  if (list.ok()) return list;
  Implementations product;
  product.add(implement(p, "product", Layout(), Layout(), make));
  return product.take();
}

Result<std::vector<Implementation>> plan_transposed_convolution(const CompositePtr& composite) {
  auto p = std::make_shared<const ConvolutionProblem>(TRY(read_problem(composite, true)));
  auto make = maker<dnnl::deconvolution_forward>(p, dnnl::algorithm::deconvolution_direct);
  Implementations found;
  found.add(implement(p, "direct", std::nullopt, std::nullopt, make));
  for (const Layout& layout : image_layouts(static_cast<int64_t>(p->source.size())))
    found.add(implement(p, "direct", layout, layout, make));
  return found.take();
}

}  // namespace collage::onednn
