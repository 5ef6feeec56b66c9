// Operators that put windows back into an image: Col2Im adds up all that cover a pixel, MaxUnpool
// writes each window's value where its index says.
#include <algorithm>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/window.h"

namespace collage::frontend {

namespace {

// What the windows of Col2Im cover: the image with its padding.
struct Canvas {
  Ints image, block, padded;  // extents by dimension
  Ints steps;                 // windows by dimension
  Window window;
};

Result<Canvas> read_canvas(NodeContext& node) {
  Canvas canvas;
  canvas.image = TRY(node.constant_ints(1, "image_shape"));
  canvas.block = TRY(node.constant_ints(2, "block_shape"));
  const size_t dims = canvas.image.size();
  if (dims < 1 || canvas.block.size() != dims || node.rank(0) != 3)
    return bad_model("image {} and blocks {} for data of shape {}", shape_to_string(canvas.image),
                     shape_to_string(canvas.block), shape_to_string(node.shape(0)));
  Shape data = {1, 1};
  data.insert(data.end(), canvas.image.begin(), canvas.image.end());
  TRY(check_computed_shape(data));
  canvas.window = TRY(read_window(node, data, canvas.block));
  int64_t blocks = 1;
  for (size_t i = 0; i < dims; ++i) {
    canvas.padded.push_back(canvas.image[i] + canvas.window.padding[i] +
                            canvas.window.padding[i + dims]);
    const int64_t room = canvas.padded[i] - canvas.window.span(i);
    if (room < 0) return bad_model("blocks {} do not fit the image", shape_to_string(canvas.block));
    canvas.steps.push_back(room / canvas.window.strides[i] + 1);
    if (canvas.steps[i] > kMaxFoldedIntegers / blocks)
      return unsupported("more than {} blocks", kMaxFoldedIntegers);
    blocks *= canvas.steps[i];
  }
  TRY(check_computed_shape(canvas.padded));
  const int64_t cells = product(canvas.block, 0, dims);
  if (node.shape(0)[1] % cells != 0 || node.shape(0)[2] != blocks)
    return bad_model("data of shape {} does not hold {} blocks of {} elements",
                     shape_to_string(node.shape(0)), blocks, cells);
  if (cells > kMaxFoldedIntegers / blocks)
    return unsupported("{} blocks of {} elements", blocks, cells);
  return canvas;
}

// Where on the canvas each element of each block goes: the element's position in the block first,
// then the block, both row-major.
Tensor places_on(const Canvas& canvas) {
  const size_t dims = canvas.image.size();
  const int64_t cells = product(canvas.block, 0, dims), blocks = product(canvas.steps, 0, dims);
  Tensor places = Tensor::zeros(DType::kInt64, {cells * blocks, 1});
  for (int64_t i = 0; i < places.size(); ++i) {
    int64_t cell = i / blocks, block = i % blocks, stride = 1;
    for (size_t d = dims; d-- > 0;) {
      const int64_t at = block % canvas.steps[d] * canvas.window.strides[d] +
                         cell % canvas.block[d] * canvas.window.dilations[d];
      places.data<int64_t>()[i] += at * stride;
      block /= canvas.steps[d];
      cell /= canvas.block[d];
      stride *= canvas.padded[d];
    }
  }
  return places;
}

Result<Expr> convert_col2im(NodeContext& node) {
  const Canvas canvas = TRY(read_canvas(node));
  const size_t dims = canvas.image.size();
  const int64_t cells = product(canvas.block, 0, dims);
  const int64_t batch = node.shape(0)[0], channels = node.shape(0)[1] / cells;
  const int64_t blocks = node.shape(0)[2];
  Expr updates = TRY(node.reshape(node.in(0), {batch, channels, cells, blocks}));
  updates = TRY(node.transpose(updates, {2, 3, 0, 1}));
  updates = TRY(node.reshape(updates, {cells * blocks, batch, channels}));
  Expr empty = TRY(node.full(node.dtype(0), {product(canvas.padded, 0, dims), batch, channels}, 0));
  Expr sums = TRY(node.call("scatter_nd", {empty, node.constant_of(places_on(canvas)), updates},
                            {{"mode", std::string("add")}}));
  Shape shape = canvas.padded;
  shape.insert(shape.end(), {batch, channels});
  sums = TRY(node.reshape(sums, std::move(shape)));
  Ints begin, end, axes, order;
  for (size_t i = 0; i < dims; ++i) {
    begin.push_back(canvas.window.padding[i]);
    end.push_back(canvas.window.padding[i] + canvas.image[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  if (canvas.padded != canvas.image)
    sums =
        TRY(node.call("strided_slice", {sums}, {{"begin", begin}, {"end", end}, {"axes", axes}}));
  order = {static_cast<int64_t>(dims), static_cast<int64_t>(dims) + 1};
  order.insert(order.end(), axes.begin(), axes.end());
  return node.transpose(sums, order);
}

// Indices count within the image that the windows cover; a larger output goes on beyond its end.
Result<Expr> convert_max_unpool(NodeContext& node) {
  const Window window = TRY(read_window(node, node.shape(0), {}));
  Shape inner(node.shape(0).begin(), node.shape(0).begin() + 2);
  for (size_t i = 0; i < window.rank(); ++i) {
    if (node.shape(0)[i + 2] > int64_t{1} << 30)
      return unsupported("data of shape {}", shape_to_string(node.shape(0)));
    const int64_t extent = (node.shape(0)[i + 2] - 1) * window.strides[i] + window.kernel[i] -
                           window.padding[i] - window.padding[i + window.rank()];
    inner.push_back(std::max<int64_t>(extent, 0));
  }
  TRY(check_computed_shape(inner));
  const int64_t total = num_elements(inner), count = num_elements(node.shape(0));
  if (node.shape(1) != node.shape(0))
    return bad_model("indices of shape {} for data of shape {}", shape_to_string(node.shape(1)),
                     shape_to_string(node.shape(0)));
  Expr result = TRY(
      node.call("scatter_elements",
                {TRY(node.full(node.dtype(0), {total}, 0)), TRY(node.reshape(node.in(1), {count})),
                 TRY(node.reshape(node.in(0), {count}))},
                {{"axis", int64_t{0}}, {"reduction", std::string("update")}}));
  result = TRY(node.reshape(result, inner));
  if (!node.has(2)) return result;
  const Ints wanted = TRY(node.constant_ints(2, "output_shape"));
  IntLists widths;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (wanted.size() != inner.size() || wanted[i] < inner[i] || wanted[i] > kMaxDimension)
      return bad_model("output_shape {} does not hold {}", shape_to_string(wanted),
                       shape_to_string(inner));
    widths.push_back({0, wanted[i] - inner[i]});
  }
  if (wanted == inner) return result;
  return node.call("nn.pad", {result, TRY(node.scalar_like(result, 0))},
                   {{"pad_width", widths}, {"pad_mode", std::string("constant")}});
}

}  // namespace

ConverterRows unpool_converters() {
  return {
      {"Col2Im", 3, 3, single(convert_col2im)},
      {"MaxUnpool", 2, 3, single(convert_max_unpool)},
  };
}

}  // namespace collage::frontend
