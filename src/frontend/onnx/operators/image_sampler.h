// Reads an image at places between its pixels, as calls, for GridSample and DeformConv. Coordinates
// are in pixels, 0 the centre of the first; images are flattened, (batch, channels, pixels), and
// coordinates (batch, 1, places), one tensor for each dimension of the image. Any coordinate is
// allowed: NaN lies outside of an image with zeros beyond it, else it gives NaN, or with kNearest
// the first pixel; an infinite coordinate is as far out, and no number after reflection.
//
//   ImageSampler sampler(node, {Sampling::kLinear, Beyond::kZeros, true}, {height, width});
//   Expr values = TRY(sampler.read(image, {y, x}));  // (batch, channels, places)
#pragma once

#include <vector>

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

enum class Sampling { kNearest, kLinear, kCubic };
enum class Beyond { kZeros, kBorder, kReflection };  // what is read outside of the image

struct SamplingMode {
  Sampling sampling = Sampling::kLinear;
  Beyond beyond = Beyond::kZeros;
  // Reflects at the centres of the outermost pixels, not at their edges.
  bool align_corners = false;
};

class ImageSampler {
 public:
  // No extent may be 0.
  ImageSampler(NodeContext& node, SamplingMode mode, Ints extents)
      : node_(node), mode_(mode), extents_(std::move(extents)) {}

  Result<Expr> read(const Expr& image, const std::vector<Expr>& coordinates);

 private:
  // What one tap of an axis reads, and its weight.
  struct Tap {
    Expr index;   // within the image
    Expr weight;  // null for 1
    Expr holds;   // whether it is read at all; null for yes
  };

  Result<Expr> number(const Expr& like, double value) { return node_.scalar_like(like, value); }
  Result<Expr> combine(const char* op, const Expr& a, double b) {
    return node_.call(op, {a, TRY(number(a, b))});
  }
  Result<Expr> clipped(const Expr& x, int64_t low, int64_t high) {
    return node_.call("clip", {x},
                      {{"a_min", static_cast<double>(low)}, {"a_max", static_cast<double>(high)}});
  }
  Result<Expr> reflected(const Expr& x, int64_t extent);
  Result<Expr> centre(const Expr& x, int64_t extent);
  Result<Tap> tap(const Expr& x, Expr weight, int64_t extent);
  Result<std::vector<Tap>> taps(const Expr& x, int64_t extent);
  Result<Expr> cubic_weight(const Expr& distance, bool near);
  Result<Expr> weighted_sum(const Expr& image, const std::vector<std::vector<Tap>>& axes);

  NodeContext& node_;
  SamplingMode mode_;
  Ints extents_;
};

}  // namespace collage::frontend
