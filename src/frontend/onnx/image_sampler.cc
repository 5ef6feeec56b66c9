#include "frontend/onnx/image_sampler.h"

namespace collage::frontend {

// x by mirrors at both ends of the image: at the outermost centres, or at the edges.
Result<Expr> ImageSampler::reflected(const Expr& x, int64_t extent) {
  const double low = mode_.align_corners ? 0 : -0.5;
  const double range = static_cast<double>(mode_.align_corners ? extent - 1 : extent);
  if (range == 0) return combine("multiply", x, 0);
  Expr distance = TRY(node_.call("abs", {TRY(combine("subtract", x, low))}));
  Expr turns = TRY(node_.call("floor", {TRY(combine("divide", distance, 2 * range))}));
  Expr rest = TRY(node_.call("subtract", {distance, TRY(combine("multiply", turns, 2 * range))}));
  Expr mirrored = TRY(node_.call("subtract", {TRY(number(rest, 2 * range)), rest}));
  return combine("add", TRY(node_.call("minimum", {rest, mirrored})), low);
}

Result<Expr> ImageSampler::padded(const Expr& x, int64_t extent) {
  switch (mode_.beyond) {
    case Beyond::kZeros:
      return x;
    case Beyond::kBorder:
      return clipped(x, extent);
    case Beyond::kReflection:
      return reflected(x, extent);
  }
  return x;
}

// x is a whole number. With zeros for padding a tap outside has weight 0.
Result<ImageSampler::Tap> ImageSampler::tap(const Expr& x, Expr weight, int64_t extent) {
  Expr at = TRY(padded(x, extent));
  Expr inside = TRY(clipped(at, extent));
  if (mode_.beyond == Beyond::kZeros) {
    Expr holds = TRY(node_.cast(TRY(node_.call("equal", {inside, at})), dtype_of(x)));
    weight = weight == nullptr ? holds : TRY(node_.call("multiply", {weight, holds}));
  }
  return Tap{TRY(node_.cast(inside, DType::kInt64)), weight};
}

// Keys' cubic convolution with a = -0.75, of the inner two or the outer two taps.
Result<Expr> ImageSampler::cubic_weight(const Expr& distance, bool near) {
  constexpr double kA = -0.75;
  // ((c3 · d + c2) · d + c1) · d + c0
  const double inner[] = {kA + 2, -(kA + 3), 0, 1}, outer[] = {kA, -5 * kA, 8 * kA, -4 * kA};
  const double* c = near ? inner : outer;
  Expr result = TRY(combine("add", TRY(combine("multiply", distance, c[0])), c[1]));
  for (size_t i = 2; i < 4; ++i) {
    result = TRY(node_.call("multiply", {result, distance}));
    if (c[i] != 0) result = TRY(combine("add", result, c[i]));
  }
  return result;
}

Result<std::vector<ImageSampler::Tap>> ImageSampler::taps(const Expr& x, int64_t extent) {
  if (mode_.sampling == Sampling::kNearest)
    return std::vector<Tap>{TRY(tap(TRY(node_.call("round", {x})), nullptr, extent))};
  Expr within = TRY(padded(x, extent));
  Expr first = TRY(node_.call("floor", {within}));
  Expr after = TRY(node_.call("subtract", {within, first}));  // distance from the tap before
  Expr before = TRY(node_.call("subtract", {TRY(number(after, 1)), after}));
  Expr second = TRY(combine("add", first, 1));
  if (mode_.sampling == Sampling::kLinear)
    return std::vector<Tap>{TRY(tap(first, before, extent)), TRY(tap(second, after, extent))};
  std::vector<Tap> result;
  result.push_back(TRY(tap(TRY(combine("subtract", first, 1)),
                           TRY(cubic_weight(TRY(combine("add", after, 1)), false)), extent)));
  result.push_back(TRY(tap(first, TRY(cubic_weight(after, true)), extent)));
  result.push_back(TRY(tap(second, TRY(cubic_weight(before, true)), extent)));
  result.push_back(TRY(tap(TRY(combine("add", first, 2)),
                           TRY(cubic_weight(TRY(combine("add", before, 1)), false)), extent)));
  return result;
}

// Over every combination of one tap an axis.
Result<Expr> ImageSampler::weighted_sum(const Expr& image,
                                        const std::vector<std::vector<Tap>>& axes) {
  std::vector<size_t> chosen(axes.size(), 0);
  Expr sum;
  for (;;) {
    Expr index, weight;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const Tap& tap = axes[axis][chosen[axis]];
      const auto extent = static_cast<double>(extents_[axis]);
      index = index == nullptr
                  ? tap.index
                  : TRY(node_.call("add", {TRY(combine("multiply", index, extent)), tap.index}));
      if (tap.weight != nullptr)
        weight = weight == nullptr ? tap.weight : TRY(node_.call("multiply", {weight, tap.weight}));
    }
    Shape shape = shape_of(index);
    shape[1] = shape_of(image)[1];
    Expr value = TRY(node_.call("gather", {image, TRY(node_.broadcast_to(index, shape))},
                                {{"axis", int64_t{2}}}));
    if (weight != nullptr) value = TRY(node_.call("multiply", {value, weight}));
    sum = sum == nullptr ? value : TRY(node_.call("add", {sum, value}));
    size_t axis = 0;
    while (axis < axes.size() && ++chosen[axis] == axes[axis].size()) chosen[axis++] = 0;
    if (axis == axes.size()) return sum;
  }
}

Result<Expr> ImageSampler::read(const Expr& image, const std::vector<Expr>& coordinates) {
  std::vector<std::vector<Tap>> axes;
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    axes.push_back(TRY(taps(coordinates[axis], extents_[axis])));
  return weighted_sum(image, axes);
}

}  // namespace collage::frontend
