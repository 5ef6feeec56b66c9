// Poolings of one to three dimensions, and means and maxima over all spatial dimensions, which are
// poolings with one window.
#include <algorithm>

#include "backend/onednn/single.h"
#include "ir/op.h"
#include "ops/reduce.h"
#include "ops/window.h"

namespace collage::onednn {

namespace {

// A window over an input, in oneDNN's terms.
struct Pool {
  dnnl::algorithm algorithm;
  Dims kernel, strides, dilates, pad_begin, pad_end;
};

Result<std::vector<Implementation>> in_every_layout(const CompositePtr& composite, const Pool& pool,
                                                    const Shape& result) {
  Implementations found;
  for (const Layout& layout :
       image_layouts(static_cast<int64_t>(result.size()), composite->types.lowered())) {
    SingleSource plan = image_source(composite, "pool", layout, result);
    // A result without spatial extent may have lost its dimensions of one: then it must be plain.
    if (composite->anchor_shape != result) {
      plan.result = canonical(layout, result);
      if (!plan.result.is_plain() || !plan.steps.empty()) continue;
    }
    found.add(single_source(
        composite, std::move(plan),
        [&](const Desc& source, const Desc& target, const dnnl::primitive_attr& attr) {
          // oneDNN 3.1 adds the wrong elements of a second tensor to pooled plain images.
          dnnl::post_ops fused = attr.get_post_ops();
          for (int i = 0; layout.is_plain() && i < fused.len(); ++i)
            if (fused.kind(i) == dnnl::primitive::kind::binary)
              throw dnnl::error(dnnl_unimplemented, "binary steps of plain pooling");
          return dnnl::pooling_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference, pool.algorithm, source, target,
              pool.strides, pool.kernel, pool.dilates, pool.pad_begin, pool.pad_end, attr);
        }));
  }
  return found.take();
}

Pool whole_extent(dnnl::algorithm algorithm, const Shape& source) {
  Dims kernel(source.begin() + 2, source.end()), none(kernel.size(), 0), ones(kernel.size(), 1);
  return {algorithm, kernel, ones, none, none, none};
}

}  // namespace

Result<std::vector<Implementation>> plan_pooling(const CompositePtr& composite) {
  const CallNode& call = *composite->anchor;
  const Shape &source = composite->inputs[0].shape, &result = composite->anchor_shape;
  std::string_view op = call.op->name;
  bool maximum = op.find("max") != std::string_view::npos;
  auto average = dnnl::algorithm::pooling_avg_exclude_padding;
  auto algorithm = maximum ? dnnl::algorithm::pooling_max : average;
  if (op.starts_with("nn.global_"))
    return in_every_layout(composite, whole_extent(algorithm, source), result);
  Window window = known_window(call.attrs, call.attrs.ints("pool_size"));
  Pool pool{algorithm, window.kernel, window.strides, {}, window.pad_begin, {}};
  bool include_padding = !maximum && call.attrs.flag("count_include_pad");
  bool padded = false;
  for (size_t d = 0; d < window.rank(); ++d) {
    pool.dilates.push_back(window.dilation[d] - 1);
    int64_t extent = (window.kernel[d] - 1) * window.dilation[d] + 1;
    int64_t used =
        (result[d + 2] - 1) * window.strides[d] + extent - source[d + 2] - window.pad_begin[d];
    // ceil_mode lets the last window reach past the padding; oneDNN would count that part too.
    if (include_padding && used > window.pad_end[d])
      return unsupported("onednn: an average over padding beyond the window's own");
    pool.pad_end.push_back(used);
    padded |= used > 0 || window.pad_begin[d] > 0;
    if (sees_only_padding(window, d, source[d + 2], result[d + 2]))
      return unsupported("onednn: a window that sees only padding");
  }
  if (include_padding && padded) pool.algorithm = dnnl::algorithm::pooling_avg_include_padding;
  return in_every_layout(composite, pool, result);
}

Result<std::vector<Implementation>> plan_reduction(const CompositePtr& composite) {
  const CallNode& call = *composite->anchor;
  std::string_view op = call.op->name;
  const Shape& source = composite->inputs[0].shape;
  auto rank = static_cast<int64_t>(source.size());
  std::vector<bool> reduced(source.size(), false);
  for (int64_t axis : TRY(reduced_axes(call.attrs, rank)))
    reduced[static_cast<size_t>(axis)] = true;
  // Kept dimensions first, reduced ones last, is what oneDNN has vector code for.
  size_t kept = 0;
  while (kept < source.size() && (!reduced[kept] || source[kept] == 1)) ++kept;
  Shape unit = source;
  for (size_t d = 0; d < source.size(); ++d)
    if (reduced[d]) unit[d] = 1;
  bool trailing = std::all_of(reduced.begin() + static_cast<std::ptrdiff_t>(kept), reduced.end(),
                              [](bool r) { return r; });
  Implementations found;
  bool spatial = rank >= 3 && rank <= 5 && !reduced[0] && !reduced[1] &&
                 std::all_of(reduced.begin() + 2, reduced.end(), [](bool r) { return r; });
  if (spatial && (op == "mean" || op == "max")) {
    auto algorithm =
        op == "max" ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
    auto pooled = in_every_layout(composite, whole_extent(algorithm, source), unit);
    if (pooled.ok())
      for (Implementation& i : *pooled) found.add(std::move(i));
  }
  constexpr std::pair<std::string_view, dnnl::algorithm> kAlgorithms[] = {
      {"mean", dnnl::algorithm::reduction_mean},
      {"sum", dnnl::algorithm::reduction_sum},
      {"max", dnnl::algorithm::reduction_max},
      {"min", dnnl::algorithm::reduction_min},
      {"prod", dnnl::algorithm::reduction_mul}};
  auto row = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                          [&](const auto& entry) { return entry.first == op; });
  if (row == std::end(kAlgorithms)) return unsupported("onednn: no reduction {}", op);
  if (trailing) {
    Shape merged = merge_dims(source, {kept, source.size()});
    SingleSource plan{"reduce", Layout(), Layout(), plain_desc(merged), plain_desc({merged[0], 1}),
                      {},       Layout(), {}};
    // Steps see one value a kept element.
    Result<std::vector<Step>> steps = std::vector<Step>{};
    if (!composite->steps.empty()) {
      const Shape& result = composite->anchor_shape;
      steps = merge_dims(composite->steps, result, {result.size(), result.size()});
    }
    if (steps.ok()) {
      plan.steps = std::move(*steps);
      found.add(single_source(
          composite, std::move(plan),
          [&](const Desc& from, const Desc& to, const dnnl::primitive_attr& attr) {
            return dnnl::reduction::primitive_desc(engine(), row->second, from, to, 0.f, 0.f, attr);
          }));
    }
  }
  return found.take();
}

}  // namespace collage::onednn
