// AffineGrid, the places of an output's pixels in an input, and GridSample, which reads there.
// Places are (x, y) or (x, y, z), each from -1 to 1 across the image.
#include <algorithm>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/limits.h"

namespace collage::frontend {

namespace {

// The homogeneous coordinates of all pixels of an image, [pixels, dimensions + 1], x first.
Tensor pixel_places(const Ints& extents, bool align_corners) {
  const size_t dims = extents.size();
  const int64_t pixels = product(extents, 0, dims);
  Tensor places = Tensor::empty(DType::kFloat32, {pixels, static_cast<int64_t>(dims) + 1});
  float* to = places.data<float>();
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    int64_t rest = pixel;
    for (size_t d = dims; d-- > 0;) {
      const auto at = static_cast<double>(rest % extents[d]);
      const auto extent = static_cast<double>(extents[d]);
      *to++ = static_cast<float>(align_corners ? 2 * at / std::max(extent - 1, 1.0) - 1
                                               : (2 * at + 1) / extent - 1);
      rest /= extents[d];
    }
    *to++ = 1;
  }
  return places;
}

// places · thetaᵀ
Result<Expr> convert_affine_grid(NodeContext& node) {
  const Ints size = TRY(node.constant_ints(1, "size"));
  if (size.size() != 4 && size.size() != 5)
    return bad_model("size {} has no 4 or 5 dimensions", shape_to_string(size));
  TRY(check_computed_shape(size));
  const Ints extents(size.begin() + 2, size.end());
  const auto dims = static_cast<int64_t>(extents.size());
  if (node.shape(0) != Shape{size[0], dims, dims + 1})
    return bad_model("theta of shape {} for size {}", shape_to_string(node.shape(0)),
                     shape_to_string(size));
  if (num_elements(extents) > kMaxFoldedIntegers)
    return unsupported("a grid of {} places", num_elements(extents));
  const bool align_corners = TRY(node.flag("align_corners", false));
  Expr places =
      TRY(node.cast(node.constant_of(pixel_places(extents, align_corners)), node.dtype(0)));
  Expr grid = TRY(node.call("nn.matmul", {places, node.in(0)}, {{"transpose_b", true}}));
  Shape shape = {size[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(dims);
  return node.reshape(grid, std::move(shape));
}

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

// GridSample, one value a place: coordinates and indices are (batch, 1, places).
class Sampler {
 public:
  Sampler(NodeContext& node, Mode mode, Padding padding, bool align_corners)
      : node_(node), mode_(mode), padding_(padding), align_corners_(align_corners) {}

  Result<Expr> run();

 private:
  // What one tap of an axis reads, and with which weight.
  struct Tap {
    Expr index;   // within the image
    Expr weight;  // null for 1
  };

  Result<Expr> number(const Expr& like, double value) { return node_.scalar_like(like, value); }
  Result<Expr> combine(const char* op, const Expr& a, double b) {
    return node_.call(op, {a, TRY(number(a, b))});
  }
  Result<Expr> clipped(const Expr& x, int64_t extent) {
    return node_.call("clip", {x}, {{"a_min", 0.0}, {"a_max", static_cast<double>(extent - 1)}});
  }
  Result<Expr> place(size_t axis, int64_t extent);
  Result<Expr> reflected(const Expr& x, int64_t extent);
  Result<Expr> padded(const Expr& x, int64_t extent);
  Result<Tap> tap(const Expr& x, Expr weight, int64_t extent);
  Result<std::vector<Tap>> taps(const Expr& x, int64_t extent);
  Result<Expr> cubic_weight(const Expr& distance, bool near);
  Result<Expr> weighted_sum(const Expr& image, const std::vector<std::vector<Tap>>& axes);

  NodeContext& node_;
  Mode mode_;
  Padding padding_;
  bool align_corners_;
};

// The coordinate along an axis of the image, in pixels.
Result<Expr> Sampler::place(size_t axis, int64_t extent) {
  const Expr& grid = node_.in(1);
  const Shape& shape = shape_of(grid);
  const int64_t last = rank_of(grid) - 1;
  const auto component = static_cast<int64_t>(shape.back()) - 1 - static_cast<int64_t>(axis);
  Expr x = TRY(
      node_.call("strided_slice", {grid},
                 {{"begin", Ints{component}}, {"end", Ints{component + 1}}, {"axes", Ints{last}}}));
  x = TRY(node_.reshape(x, {shape[0], 1, product(shape, 1, shape.size() - 1)}));
  const auto pixels = static_cast<double>(extent);
  // (x + 1) / 2 of the pixels' centres, or of their outer edges
  x = TRY(combine("add", x, 1));
  if (align_corners_) return combine("multiply", x, (pixels - 1) / 2);
  x = TRY(combine("multiply", x, pixels / 2));
  return combine("subtract", x, 0.5);
}

// x by mirrors at both ends of the image: at the outermost centres, or at the edges.
Result<Expr> Sampler::reflected(const Expr& x, int64_t extent) {
  const double low = align_corners_ ? 0 : -0.5;
  const double range = static_cast<double>(align_corners_ ? extent - 1 : extent);
  if (range == 0) return combine("multiply", x, 0);
  Expr distance = TRY(node_.call("abs", {TRY(combine("subtract", x, low))}));
  Expr turns = TRY(node_.call("floor", {TRY(combine("divide", distance, 2 * range))}));
  Expr rest = TRY(node_.call("subtract", {distance, TRY(combine("multiply", turns, 2 * range))}));
  Expr mirrored = TRY(node_.call("subtract", {TRY(number(rest, 2 * range)), rest}));
  return combine("add", TRY(node_.call("minimum", {rest, mirrored})), low);
}

Result<Expr> Sampler::padded(const Expr& x, int64_t extent) {
  switch (padding_) {
    case Padding::kZeros:
      return x;
    case Padding::kBorder:
      return clipped(x, extent);
    case Padding::kReflection:
      return reflected(x, extent);
  }
  return x;
}

// x is a whole number. With zeros for padding a tap outside has weight 0.
Result<Sampler::Tap> Sampler::tap(const Expr& x, Expr weight, int64_t extent) {
  Expr at = TRY(padded(x, extent));
  Expr inside = TRY(clipped(at, extent));
  if (padding_ == Padding::kZeros) {
    Expr holds = TRY(node_.cast(TRY(node_.call("equal", {inside, at})), dtype_of(x)));
    weight = weight == nullptr ? holds : TRY(node_.call("multiply", {weight, holds}));
  }
  return Tap{TRY(node_.cast(inside, DType::kInt64)), weight};
}

// Keys' cubic convolution with a = -0.75, of the inner two or the outer two taps.
Result<Expr> Sampler::cubic_weight(const Expr& distance, bool near) {
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

Result<std::vector<Sampler::Tap>> Sampler::taps(const Expr& x, int64_t extent) {
  if (mode_ == Mode::kNearest)
    return std::vector<Tap>{TRY(tap(TRY(node_.call("round", {x})), nullptr, extent))};
  Expr within = TRY(padded(x, extent));
  Expr first = TRY(node_.call("floor", {within}));
  Expr after = TRY(node_.call("subtract", {within, first}));  // distance from the tap before
  Expr before = TRY(node_.call("subtract", {TRY(number(after, 1)), after}));
  Expr second = TRY(combine("add", first, 1));
  if (mode_ == Mode::kLinear)
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

// Over every combination of one tap an axis. `image` is (batch, channels, pixels).
Result<Expr> Sampler::weighted_sum(const Expr& image, const std::vector<std::vector<Tap>>& axes) {
  const Shape& data = node_.shape(0);
  std::vector<size_t> chosen(axes.size(), 0);
  Expr sum;
  for (;;) {
    Expr index, weight;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const Tap& tap = axes[axis][chosen[axis]];
      const auto extent = static_cast<double>(data[axis + 2]);
      index = index == nullptr
                  ? tap.index
                  : TRY(node_.call("add", {TRY(combine("multiply", index, extent)), tap.index}));
      if (tap.weight != nullptr)
        weight = weight == nullptr ? tap.weight : TRY(node_.call("multiply", {weight, tap.weight}));
    }
    Shape shape = shape_of(index);
    shape[1] = data[1];
    Expr value = TRY(node_.call("gather", {image, TRY(node_.broadcast_to(index, shape))},
                                {{"axis", int64_t{2}}}));
    if (weight != nullptr) value = TRY(node_.call("multiply", {value, weight}));
    sum = sum == nullptr ? value : TRY(node_.call("add", {sum, value}));
    size_t axis = 0;
    while (axis < axes.size() && ++chosen[axis] == axes[axis].size()) chosen[axis++] = 0;
    if (axis == axes.size()) return sum;
  }
}

Result<Expr> Sampler::run() {
  const Shape &data = node_.shape(0), &grid = node_.shape(1);
  const size_t dims = data.size() < 3 ? 0 : data.size() - 2;
  if (dims == 0 || grid.size() != data.size() || grid[0] != data[0] ||
      grid.back() != static_cast<int64_t>(dims) || node_.dtype(1) != node_.dtype(0) ||
      !is_float(node_.dtype(0)))
    return bad_model("a grid of shape {} for data of shape {}", shape_to_string(grid),
                     shape_to_string(data));
  if (dims > 3) return unsupported("{} spatial dimensions", dims);
  for (size_t i = 0; i < dims; ++i)
    if (data[i + 2] < 1) return unsupported("data of shape {}", shape_to_string(data));
  std::vector<std::vector<Tap>> axes;
  for (size_t axis = 0; axis < dims; ++axis)
    axes.push_back(TRY(taps(TRY(place(axis, data[axis + 2])), data[axis + 2])));
  Expr image = TRY(node_.reshape(node_.in(0), {data[0], data[1], product(data, 2, data.size())}));
  Expr result = TRY(weighted_sum(image, axes));
  Shape shape = {data[0], data[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return node_.reshape(result, std::move(shape));
}

// Operator set 20 renamed the modes.
Result<Expr> convert_grid_sample(NodeContext& node) {
  const std::string mode = TRY(node.text("mode", "linear"));
  const std::string padding = TRY(node.text("padding_mode", "zeros"));
  Mode how = Mode::kLinear;
  if (mode == "nearest") {
    how = Mode::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    how = Mode::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return bad_model("mode '{}' is unknown", mode);
  }
  Padding beyond = Padding::kZeros;
  if (padding == "border") {
    beyond = Padding::kBorder;
  } else if (padding == "reflection") {
    beyond = Padding::kReflection;
  } else if (padding != "zeros") {
    return bad_model("padding_mode '{}' is unknown", padding);
  }
  return Sampler(node, how, beyond, TRY(node.flag("align_corners", false))).run();
}

}  // namespace

ConverterRows grid_converters() {
  return {
      {"AffineGrid", 2, 2, single(convert_affine_grid)},
      {"GridSample", 2, 2, single(convert_grid_sample)},
  };
}

}  // namespace collage::frontend
