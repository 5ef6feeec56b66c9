// The oneDNN library at this backend's edge: the process's engine and stream, exceptions turned
// into a Status, and the thread count that its primitives are made for.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace collage::onednn {

using Type = dnnl::memory::data_type;
inline constexpr Type kFloat = Type::f32, kBrainFloat = Type::bf16;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

const dnnl::engine& engine();
const dnnl::stream& stream();
std::string library_version();  // "3.1.0"

// Runs `body`, which may throw what oneDNN throws (or run out of memory), and gives its result;
// `what` names the attempt in the error. `body` returns a Result or a Status.
template <typename Body>
auto guarded(std::string_view what, Body&& body) -> std::invoke_result_t<Body> {
  try {
    return body();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented) return unsupported("onednn: {}: not implemented", what);
    return unsupported("onednn: {}: {}", what, e.what());
  } catch (const std::exception& e) {
    return internal_error("onednn: {}: {}", what, e.what());
  }
}

// oneDNN plans a primitive for the OpenMP team size at the moment it is made; within the scope it
// is `threads`.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int saved_;
};

// Whether an implementation name is one of oneDNN's naive loops, which are never worth offering.
bool is_naive(std::string_view implementation);

// Attributes every primitive of this backend has: the caller owns the scratchpad.
dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {});

}  // namespace collage::onednn
