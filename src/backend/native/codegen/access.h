// How a kernel template reads a tensor: by logical coordinates, whatever the layout in memory.
//
// A template is written against logical coordinates (n, c, z, y, x, outermost first). An `Access`
// maps them to a Halide expression: a load from a plain or channel-blocked buffer, a broadcast, or
// a whole element-wise expression over other accesses. Where a template walks channels as (block,
// lane) it says so in `Coords`, so that a blocked buffer is indexed without division. Padded
// channel lanes of a blocked buffer exist in memory and hold finite values.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensor_program/emit/emitter.h"

namespace collage::native {

using tensor_program::ChannelLayout;
using tensor_program::kChannelBlock;

/// Where an element is read or written.
struct Coords {
  std::vector<Halide::Expr> logical;  ///< outermost first
  Halide::Expr block,
      lane;  ///< channel = block * 16 + lane, where the template knows them; else undefined
};

using Access = std::function<Halide::Expr(const Coords&)>;

/// Given the accumulated value at `Coords`, the value to store there.
using Epilogue = std::function<Halide::Expr(Halide::Expr, const Coords&)>;

/// A buffer argument of a kernel: sizes outermost first, dense row-major; constant bounds and
/// strides are attached so that the compiled code only reads the host pointer.
class BufferArg {
 public:
  BufferArg(const std::string& name, Halide::Type type, std::vector<int64_t> shape);
  /// With the sizes as expressions, which are `shape` for this call.
  BufferArg(const std::string& name, Halide::Type type, std::vector<int64_t> shape,
            const std::vector<Halide::Expr>& sizes);

  /// A load; indices outermost first.
  Halide::Expr operator()(const std::vector<Halide::Expr>& at) const;

  const Halide::ImageParam& param() const { return param_; }
  const std::vector<int64_t>& shape() const { return shape_; }

 private:
  std::vector<int64_t> shape_;
  Halide::ImageParam param_;
};

/// Physical extents, innermost first, of a tensor of this logical shape.
std::vector<int64_t> physical_extents(const std::vector<int64_t>& shape, ChannelLayout layout);

/// Fixes bounds and dense strides (extents innermost first) of a kernel's buffer.
void fix_dense(Halide::OutputImageParam buffer, const std::vector<int64_t>& extents);
void fix_dense(Halide::OutputImageParam buffer, const std::vector<Halide::Expr>& extents);
void fix_strided(Halide::OutputImageParam buffer, const std::vector<int64_t>& extents,
                 const std::vector<int64_t>& strides);

}  // namespace collage::native
