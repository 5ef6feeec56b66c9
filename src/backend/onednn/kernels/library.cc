#include "backend/onednn/kernels/library.h"

#include <stdexcept>

#include "runtime/openmp_calls.h"

namespace collage::onednn {

const dnnl::engine& engine() {
  static const auto* instance = [] {
    const Status led = lead_openmp_calls(reinterpret_cast<const void*>(&dnnl_version));
    if (!led.ok()) throw std::runtime_error(led.to_string());
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *instance;
}

const dnnl::stream& stream() {
  static const auto* instance = new dnnl::stream(engine());
  return *instance;
}

std::string library_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

bool is_naive(std::string_view implementation) { return implementation.starts_with("ref"); }

dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops, const Masks& masks) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post_ops);
  for (const auto& [arg, mask] : masks) {
    if ((arg & DNNL_ARG_ATTR_SCALES) != 0)
      attr.set_scales_mask(arg & ~DNNL_ARG_ATTR_SCALES, mask);
    else
      attr.set_zero_points_mask(arg & ~DNNL_ARG_ATTR_ZERO_POINTS, mask);
  }
  return attr;
}

}  // namespace collage::onednn
