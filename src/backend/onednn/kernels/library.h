// The oneDNN library at this backend's edge: the process's engine and stream, and conversion of
// exceptions to a Status.
//
// oneDNN plans a primitive for the team's size when it is made: make primitives within a
// TeamScope (runtime/thread_team.h), and run them within one of the same size. A scratchpad of
// the library's belongs to the thread that made the primitive: kernels bring their own
// (attributes).
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace collage::onednn {

using Type = dnnl::memory::data_type;
inline constexpr Type kFloat = Type::f32, kBrainFloat = Type::bf16;
inline constexpr Type kSignedByte = Type::s8, kUnsignedByte = Type::u8;
inline bool is_byte(Type type) { return type == kSignedByte || type == kUnsignedByte; }
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

const dnnl::engine& engine();
const dnnl::stream& stream();   // on processors it has no state: any number of threads use it
std::string library_version();  // "3.1.0"

// Runs `body`, which may throw what oneDNN throws (or run out of memory), and returns its result;
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

// Returns whether an implementation name is one of oneDNN's naive loops, which are never offered.
bool is_naive(std::string_view implementation);

// Scales and zero points that a primitive is given when it runs: DNNL_ARG_ATTR_SCALES or
// DNNL_ARG_ATTR_ZERO_POINTS with the argument that they belong to, and the dimensions of it (a bit
// each) that they vary along.
using Masks = std::vector<std::pair<int, int>>;

// Attributes every primitive of this backend has: the caller owns the scratchpad.
dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {}, const Masks& masks = {});

}  // namespace collage::onednn
