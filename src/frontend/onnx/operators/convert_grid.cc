// AffineGrid, the places of an output's pixels in an input, and GridSample, which reads there.
// Places are (x, y) or (x, y, z), each from -1 to 1 across the image.
#include <algorithm>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/image_sampler.h"

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

// The coordinate along an axis of the image, in pixels, as (batch, 1, places).
Result<Expr> grid_coordinate(NodeContext& node, size_t axis, int64_t extent, bool align_corners) {
  const Expr& grid = node.in(1);
  const Shape& shape = shape_of(grid);
  const int64_t last = rank_of(grid) - 1;
  const auto component = static_cast<int64_t>(shape.back()) - 1 - static_cast<int64_t>(axis);
  Expr x = TRY(
      node.call("strided_slice", {grid},
                {{"begin", Ints{component}}, {"end", Ints{component + 1}}, {"axes", Ints{last}}}));
  x = TRY(node.reshape(x, {shape[0], 1, product(shape, 1, shape.size() - 1)}));
  const auto pixels = static_cast<double>(extent);
  const auto combine = [&](const char* op, const Expr& a, double b) -> Result<Expr> {
    return node.call(op, {a, TRY(node.scalar_like(a, b))});
  };
  // (x + 1) / 2 of the pixels' centres, or of their outer edges
  x = TRY(combine("add", x, 1));
  if (align_corners) return combine("multiply", x, (pixels - 1) / 2);
  x = TRY(combine("multiply", x, pixels / 2));
  return combine("subtract", x, 0.5);
}

Result<Expr> sample_grid(NodeContext& node, SamplingMode mode) {
  const Shape &data = node.shape(0), &grid = node.shape(1);
  const size_t dims = data.size() < 3 ? 0 : data.size() - 2;
  if (dims == 0 || grid.size() != data.size() || grid[0] != data[0] ||
      grid.back() != static_cast<int64_t>(dims) || node.dtype(1) != node.dtype(0) ||
      !is_float(node.dtype(0)))
    return bad_model("a grid of shape {} for data of shape {}", shape_to_string(grid),
                     shape_to_string(data));
  if (dims > 3) return unsupported("{} spatial dimensions", dims);
  const Ints extents(data.begin() + 2, data.end());
  std::vector<Expr> coordinates;
  for (size_t axis = 0; axis < dims; ++axis) {
    if (extents[axis] < 1) return unsupported("data of shape {}", shape_to_string(data));
    coordinates.push_back(TRY(grid_coordinate(node, axis, extents[axis], mode.align_corners)));
  }
  Expr image = TRY(node.reshape(node.in(0), {data[0], data[1], num_elements(extents)}));
  Expr result = TRY(ImageSampler(node, mode, extents).read(image, coordinates));
  Shape shape = {data[0], data[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return node.reshape(result, std::move(shape));
}

// Operator set 20 renamed the modes.
Result<Expr> convert_grid_sample(NodeContext& node) {
  const std::string mode = TRY(node.text("mode", "linear"));
  const std::string padding = TRY(node.text("padding_mode", "zeros"));
  SamplingMode how;
  if (mode == "nearest") {
    how.sampling = Sampling::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    how.sampling = Sampling::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return bad_model("mode '{}' is unknown", mode);
  }
  if (padding == "border") {
    how.beyond = Beyond::kBorder;
  } else if (padding == "reflection") {
    how.beyond = Beyond::kReflection;
  } else if (padding != "zeros") {
    return bad_model("padding_mode '{}' is unknown", padding);
  }
  how.align_corners = TRY(node.flag("align_corners", false));
  return sample_grid(node, how);
}

}  // namespace

ConverterRows grid_converters() {
  return {
      {"AffineGrid", 2, 2, single(convert_affine_grid)},
      {"GridSample", 2, 2, single(convert_grid_sample)},
  };
}

}  // namespace collage::frontend
