#include "frontend/onnx/operators/image_sampler.h"

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

// The place, before it is split into taps, each of which is brought into the image. With the border
// beyond it, all places farther out than the taps reach read the same, and none may be infinite,
// which has no distance from its taps.
Result<Expr> ImageSampler::centre(const Expr& x, int64_t extent) {
  if (mode_.beyond != Beyond::kBorder) return x;
  const int64_t reach = mode_.sampling == Sampling::kCubic ? 2 : 0;
  return clipped(x, -reach, extent - 1 + reach);
}

// x is a whole number, or none: then the first pixel is read. With zeros beyond the image `holds`
// says whether the tap is inside.
Result<ImageSampler::Tap> ImageSampler::tap(const Expr& x, Expr weight, int64_t extent) {
  Expr at = mode_.beyond == Beyond::kReflection ? TRY(reflected(x, extent)) : x;
  Expr inside = TRY(clipped(at, 0, extent - 1));
  Expr holds;
  if (mode_.beyond == Beyond::kZeros) holds = TRY(node_.call("equal", {inside, at}));
  const Expr index = TRY(node_.cast(inside, DType::kInt64));  // the least of all for NaN
  return Tap{TRY(combine("maximum", index, 0)), std::move(weight), std::move(holds)};
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
  Expr within = TRY(centre(x, extent));
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

// Over every combination of one tap an axis. What lies outside adds nothing, whatever is read in
// its place: neither a NaN of the image nor the weight of a place that is infinite.
Result<Expr> ImageSampler::weighted_sum(const Expr& image,
                                        const std::vector<std::vector<Tap>>& axes) {
  std::vector<size_t> chosen(axes.size(), 0);
  Expr sum;
  for (;;) {
    Expr index, weight, holds;
    const auto join = [&](const char* op, Expr& all, const Expr& one) -> Status {
      if (one != nullptr) all = all == nullptr ? one : TRY(node_.call(op, {all, one}));
      return {};
    };
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const Tap& tap = axes[axis][chosen[axis]];
      const auto extent = static_cast<double>(extents_[axis]);
      index = index == nullptr
                  ? tap.index
                  : TRY(node_.call("add", {TRY(combine("multiply", index, extent)), tap.index}));
      TRY(join("multiply", weight, tap.weight));
      TRY(join("logical_and", holds, tap.holds));
    }
    Shape shape = shape_of(index);
    shape[1] = shape_of(image)[1];
    Expr value = TRY(node_.call("gather", {image, TRY(node_.broadcast_to(index, shape))},
                                {{"axis", int64_t{2}}}));
    if (weight != nullptr) value = TRY(node_.call("multiply", {value, weight}));
    if (holds != nullptr) value = TRY(node_.call("where", {holds, value, TRY(number(value, 0))}));
    TRY(join("add", sum, value));
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
