// AffineGrid, the places of an output's pixels in an input, and GridSample, which reads there.
// Places are (x, y) or (x, y, z), each from -1 to 1 across the image.
#include <algorithm>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"

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

// Operator set 20 renamed the modes.
Result<Expr> convert_grid_sample(NodeContext& node) {
  std::string mode = TRY(node.text("mode", "linear"));
  if (mode.starts_with("bi")) mode = mode.substr(2);
  return node.call("image.grid_sample", {node.in(0), node.in(1)},
                   {{"method", mode},
                    {"padding_mode", TRY(node.text("padding_mode", "zeros"))},
                    {"align_corners", TRY(node.flag("align_corners", false))}});
}

}  // namespace

ConverterRows grid_converters() {
  return {
      {"AffineGrid", 2, 2, single(convert_affine_grid)},
      {"GridSample", 2, 2, single(convert_grid_sample)},
  };
}

}  // namespace collage::frontend
