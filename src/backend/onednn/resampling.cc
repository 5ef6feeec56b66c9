// Resizing by nearest neighbour or linearly, where oneDNN's fixed coordinates (half pixel, rounded
// half away from zero) read what the operator reads: then the axes' taps are equal.
#include <cmath>

#include "backend/onednn/single.h"
#include "ir/op.h"
#include "ops/resize.h"

namespace collage::onednn {

namespace {

// The taps of oneDNN's resampling along one axis.
std::vector<ResizeTap> library_taps(bool linear, int64_t at, int64_t output, int64_t input) {
  float x =
      (static_cast<float>(at) + 0.5f) * static_cast<float>(input) / static_cast<float>(output) -
      0.5f;
  if (!linear) return {{static_cast<int64_t>(std::roundf(x)), 1.0}};
  int64_t low = std::max<int64_t>(static_cast<int64_t>(std::floor(x)), 0);
  int64_t high = std::min<int64_t>(static_cast<int64_t>(std::ceil(x)), input - 1);
  double weight = std::abs(x - static_cast<float>(low));
  return {{low, 1 - weight}, {high, weight}};
}

double weight_at(const std::vector<ResizeTap>& taps, int64_t source) {
  double sum = 0;
  for (const ResizeTap& tap : taps)
    if (tap.source == source) sum += tap.weight;
  return sum;
}

bool equal(const std::vector<ResizeTap>& a, const std::vector<ResizeTap>& b) {
  for (const auto* taps : {&a, &b})
    for (const ResizeTap& tap : *taps)
      if (std::abs(weight_at(a, tap.source) - weight_at(b, tap.source)) > 1e-5) return false;
  return true;
}

}  // namespace

Result<std::vector<Implementation>> plan_resampling(const CompositePtr& composite) {
  const Attrs& attrs = composite->anchor->attrs;
  const Shape &source = composite->inputs[0].shape, &result = composite->anchor_shape;
  const std::string& method = attrs.string("method");
  if (method == "cubic") return unsupported("onednn: no cubic resampling");
  bool linear = method == "linear";
  for (size_t d = 2; d < source.size(); ++d) {
    ResizeAxis axis = resize_axis(attrs, d - 2, source.size() - 2, source[d]);
    for (size_t i = 0; i < axis.size(); ++i)
      if (!equal(axis[i], library_taps(linear, static_cast<int64_t>(i), result[d], source[d])))
        return unsupported("onednn: other coordinates than half pixel");
  }
  auto algorithm =
      linear ? dnnl::algorithm::resampling_linear : dnnl::algorithm::resampling_nearest;
  Implementations found;
  for (const Layout& layout : image_layouts(static_cast<int64_t>(source.size())))
    found.add(single_source(
        composite, image_source(composite, "resample", layout, result),
        [&](const Desc& from, const Desc& to, const dnnl::primitive_attr& attr) {
          // oneDNN 3.1 adds the wrong elements of a second tensor to resampled images.
          dnnl::post_ops fused = attr.get_post_ops();
          for (int i = 0; i < fused.len(); ++i)
            if (fused.kind(i) == dnnl::primitive::kind::binary)
              throw dnnl::error(dnnl_unimplemented, "binary steps of resampling");
          return dnnl::resampling_forward::primitive_desc(
              engine(), dnnl::prop_kind::forward_inference, algorithm, from, to, attr);
        }));
  return found.take();
}

}  // namespace collage::onednn
