// MatMulNBits: a product with weights of a few bits. Of a few rows, which wait for the weights,
// they stay packed; else they become a constant of single precision while importing. Computation is
// in single precision, which every accuracy_level allows.
#include <algorithm>
#include <vector>

#include "base/integers.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// Weights [outputs, inputs] in blocks along the inputs, each with a scale and a zero point.
struct WeightBlocks {
  int64_t inputs, outputs;  // attributes K and N
  int64_t size, count;      // elements of a block, blocks of a row
  int64_t bits;

  int64_t bytes() const { return size * bits / 8; }                 // of a block
  int64_t zero_bytes() const { return ceil_div(count * bits, 8); }  // of a row's zero points
};

// Code `i` of those packed from the low bits of each byte on.
int code_at(const uint8_t* packed, int64_t i, int64_t bits) {
  const int64_t each = 8 / bits;
  return (packed[i / each] >> (i % each * bits)) & ((1 << bits) - 1);
}

Result<WeightBlocks> read_weight_blocks(NodeContext& node) {
  WeightBlocks blocks{TRY(node.integer("K")), TRY(node.integer("N")),
                      TRY(node.integer("block_size")), 0, TRY(node.integer("bits", 4))};
  constexpr int64_t kMost = int64_t{1} << 30;
  if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
    return unsupported("{} bits", blocks.bits);
  if (blocks.inputs < 1 || blocks.inputs > kMost || blocks.outputs < 1 || blocks.outputs > kMost ||
      blocks.size < 16 || blocks.size > kMost || (blocks.size & (blocks.size - 1)) != 0)
    return bad_model("K {}, N {}, block_size {}", blocks.inputs, blocks.outputs, blocks.size);
  blocks.count = ceil_div(blocks.inputs, blocks.size);
  TRY(check_computed_shape({blocks.outputs, blocks.inputs}));
  return blocks;
}

// One value a block. Half precision fits single precision.
Result<std::vector<float>> block_values(const Tensor& given, const WeightBlocks& blocks,
                                        const char* what) {
  if (!is_float(given.dtype()) || given.size() != blocks.outputs * blocks.count)
    return bad_model("{} is {} of shape {}, not {} by {} numbers", what, dtype_name(given.dtype()),
                     shape_to_string(given.shape()), blocks.outputs, blocks.count);
  std::vector<float> values(static_cast<size_t>(given.size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(given.element_as_double(static_cast<int64_t>(i)));
  return values;
}

Result<std::vector<float>> zero_points(NodeContext& node, const WeightBlocks& blocks) {
  if (!node.has(3))
    return std::vector<float>(static_cast<size_t>(blocks.outputs * blocks.count),
                              static_cast<float>(1 << (blocks.bits - 1)));
  const Tensor given = TRY(node.constant(3, "zero_points"));
  if (given.dtype() != DType::kUInt8) return block_values(given, blocks, "zero_points");
  if (given.size() != blocks.outputs * blocks.zero_bytes())
    return bad_model("zero_points of shape {}, not {} rows of {} bytes",
                     shape_to_string(given.shape()), blocks.outputs, blocks.zero_bytes());
  std::vector<float> values;
  values.reserve(static_cast<size_t>(blocks.outputs * blocks.count));
  for (int64_t row = 0; row < blocks.outputs; ++row)
    for (int64_t block = 0; block < blocks.count; ++block)
      values.push_back(static_cast<float>(
          code_at(given.data<uint8_t>() + row * blocks.zero_bytes(), block, blocks.bits)));
  return values;
}

Result<Tensor> packed_codes(NodeContext& node, const WeightBlocks& blocks) {
  const Tensor packed = TRY(node.constant(1, "B"));
  if (packed.dtype() != DType::kUInt8 ||
      packed.size() != blocks.outputs * blocks.count * blocks.bytes())
    return bad_model("B is {} of shape {}, not uint8 of shape {}", dtype_name(packed.dtype()),
                     shape_to_string(packed.shape()),
                     shape_to_string({blocks.outputs, blocks.count, blocks.bytes()}));
  return packed;
}

// (code - zero point) · scale
Result<Tensor> dequantised_weights(NodeContext& node, const WeightBlocks& blocks) {
  const Tensor packed = TRY(packed_codes(node, blocks));
  const std::vector<float> scales =
      TRY(block_values(TRY(node.constant(2, "scales")), blocks, "scales"));
  const std::vector<float> zeros = TRY(zero_points(node, blocks));
  Tensor weights = TRY(Tensor::allocate(DType::kFloat32, Shape{blocks.outputs, blocks.inputs}));
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < blocks.outputs; ++row)
    for (int64_t block = 0; block < blocks.count; ++block) {
      const int64_t at = row * blocks.count + block;
      const float scale = scales[static_cast<size_t>(at)], zero = zeros[static_cast<size_t>(at)];
      const uint8_t* codes = packed.data<uint8_t>() + at * blocks.bytes();
      float* to = weights.data<float>() + row * blocks.inputs + block * blocks.size;
      const int64_t count = std::min(blocks.size, blocks.inputs - block * blocks.size);
      for (int64_t i = 0; i < count; ++i)
        to[i] = (static_cast<float>(code_at(codes, i, blocks.bits)) - zero) * scale;
    }
  return weights;
}

// As nn.packed_dense has them: bytes beside one another are of neighbouring outputs.
Result<Expr> packed_product(NodeContext& node, const WeightBlocks& blocks) {
  const Tensor packed = TRY(packed_codes(node, blocks));
  const int64_t bytes = blocks.count * blocks.bytes(), n = blocks.outputs;
  const auto transposed = [n]<typename T>(const T* from, int64_t count, Tensor to) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t row = 0; row < n; ++row) to.data<T>()[i * n + row] = from[row * count + i];
    return to;
  };
  const auto by_block = [&](const std::vector<float>& values) {
    return transposed(values.data(), blocks.count,
                      Tensor::empty(DType::kFloat32, {blocks.count, n}));
  };
  const std::vector<float> scales =
      TRY(block_values(TRY(node.constant(2, "scales")), blocks, "scales"));
  const Expr codes = node.constant_of(
      transposed(packed.data<uint8_t>(), bytes, Tensor::empty(DType::kUInt8, {bytes, n})));
  const Expr zeros =
      node.has(3) ? node.constant_of(by_block(TRY(zero_points(node, blocks))))
                  : node.constant_of(Tensor::scalar(static_cast<float>(1 << (blocks.bits - 1))));
  const Expr data = TRY(node.cast(node.in(0), DType::kFloat32));
  const Expr result =
      TRY(node.call("nn.packed_dense", {data, codes, node.constant_of(by_block(scales)), zeros},
                    {{"bits", blocks.bits}, {"block_size", blocks.size}}));
  return node.cast(result, node.dtype(0));
}

Result<Expr> convert_matmul_nbits(NodeContext& node) {
  if (node.has(4)) return unsupported("g_idx");
  if (TRY(node.integer("weight_prepacked", 0)) != 0) return unsupported("weight_prepacked");
  const WeightBlocks blocks = TRY(read_weight_blocks(node));
  if (!is_float(node.dtype(0))) return bad_model("A is {}", dtype_name(node.dtype(0)));
  const Shape& data = node.shape(0);
  constexpr int64_t kFewRows = 8;
  const bool few = !data.empty() && data.back() == blocks.inputs &&
                   num_elements(data) <= kFewRows * blocks.inputs &&
                   blocks.inputs % blocks.size == 0;
  Expr result;
  if (few) {
    result = TRY(packed_product(node, blocks));
  } else {
    const Expr weights = node.constant_of(TRY(dequantised_weights(node, blocks)));
    result = TRY(node.call("nn.dense", {node.in(0), TRY(node.cast(weights, node.dtype(0)))}));
  }
  if (!node.has(5)) return result;
  return node.call("nn.bias_add", {result, node.in(5)}, {{"axis", int64_t{-1}}});
}

}  // namespace

ConverterRows microsoft_quantised_converters() {
  return {
      {"MatMulNBits", 3, 6, single(convert_matmul_nbits)},
  };
}

}  // namespace collage::frontend
