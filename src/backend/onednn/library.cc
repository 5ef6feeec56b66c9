#include "backend/onednn/library.h"

#include <omp.h>

namespace collage::onednn {

const dnnl::engine& engine() {
  static const auto* instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
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

ThreadScope::ThreadScope(int threads) : saved_(omp_get_max_threads()) {
  omp_set_num_threads(threads > 0 ? threads : 1);
}
ThreadScope::~ThreadScope() { omp_set_num_threads(saved_); }

bool is_naive(std::string_view implementation) { return implementation.starts_with("ref"); }

dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post_ops);
  return attr;
}

}  // namespace collage::onednn
