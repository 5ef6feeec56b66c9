#include "backend/opencl/packed_constants.h"

#include <algorithm>

#include "backend/native/kernel_group.h"
#include "ir/op.h"

namespace collage::opencl {

namespace tp = tensor_program;

namespace {

/// [k, n] as [n / lanes, k, n % lanes], which a processor reads in order.
Tensor in_columns(const Tensor& matrix, int64_t lanes) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor packed = Tensor::empty(DType::kFloat32, {columns / lanes, rows, lanes});
  const auto* from = matrix.data<float>();
  auto* to = packed.data<float>();
  for (int64_t column = 0; column < columns; column += lanes)
    for (int64_t row = 0; row < rows; ++row, to += lanes)
      std::copy_n(from + row * columns + column, lanes, to);
  return packed;
}

/// Weights [o, …] as [o / lanes, …, o % lanes].
Tensor by_channels(const Tensor& weights, int64_t lanes) {
  const Shape& shape = weights.shape();
  Shape blocks = shape;
  blocks[0] /= lanes;
  blocks.push_back(lanes);
  Tensor packed = Tensor::empty(DType::kFloat32, blocks);
  const int64_t taps = weights.size() / shape[0];
  const auto* from = weights.data<float>();
  auto* to = packed.data<float>();
  for (int64_t channel = 0; channel < shape[0]; ++channel)
    for (int64_t tap = 0; tap < taps; ++tap)
      to[(channel / lanes * taps + tap) * lanes + channel % lanes] = *from++;
  return packed;
}

std::string add_constant(tp::Emitter& emitter, Tensor value) {
  auto& buffers = emitter.program().buffers;
  std::string name = "packed" + std::to_string(buffers.size());
  const TensorType type{value.shape(), value.dtype()};
  buffers.push_back({name, type, true, std::move(value)});
  return name;
}

void pack_weights(tp::Emitter& emitter, const std::vector<Expr>& order, const Tile& tile) {
  for (const Expr& node : order) {
    const CallNode* conv = sum_of(node);
    if (conv == nullptr || !has_whole_lanes(*conv, tile.lanes)) continue;
    const std::string name =
        add_constant(emitter, by_channels(as<ConstantNode>(conv->args[1])->value, tile.lanes));
    emitter.bind(conv->args[1], [name, lanes = tile.lanes](const tp::Coords& at) {
      std::vector<tp::Term> index = at.logical;
      index.push_back(index[0] % lanes);
      index[0] = index[0] / lanes;
      return tp::load(name, DType::kFloat32, std::move(index));
    });
  }
}

/// Constant matrices of products in columns as wide as tiles.
void pack_matrices(tp::Emitter& emitter, const std::vector<Expr>& order, const Tile& tile) {
  for (const Expr& node : order) {
    const CallNode* sum = sum_of(node);
    if (sum == nullptr || sum->args.size() < 2 || sum->op->name.find("matmul") == std::string::npos)
      continue;
    const auto* constant = as<ConstantNode>(sum->args[1]);
    if (constant == nullptr || constant->value.rank() != 2 ||
        constant->value.dtype() != DType::kFloat32 || constant->value.shape()[1] % tile.lanes != 0)
      continue;
    const std::string name = add_constant(emitter, in_columns(constant->value, tile.lanes));
    emitter.bind(sum->args[1], [name, lanes = tile.lanes](const tp::Coords& at) {
      const tp::Term &row = at.logical[0], &column = at.logical[1];
      return tp::load(name, DType::kFloat32, {column / lanes, row, column % lanes});
    });
  }
}

}  // namespace

const CallNode* sum_of(const Expr& node) {
  const auto* call = as<CallNode>(node);
  return call != nullptr && call->op != nullptr && native::is_template_anchor(*call) ? call
                                                                                     : nullptr;
}

bool has_whole_lanes(const CallNode& sum, int64_t lanes) {
  if (!sum.op->name.starts_with("nn.conv")) return false;
  const auto* weights = as<ConstantNode>(sum.args[1]);
  return weights != nullptr && sum.attrs.integer("groups") == 1 &&
         weights->value.shape()[0] % lanes == 0;
}

void pack_constants(tp::Emitter& emitter, const std::vector<Expr>& order, const Tile& tile) {
  if (tile.packed) pack_matrices(emitter, order, tile);
  if (tile.across) pack_weights(emitter, order, tile);
}

}  // namespace collage::opencl
