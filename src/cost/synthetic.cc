#include "cost/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

// splitmix64: fast, seedable per tensor.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
  }
};

void fill_float(Tensor& tensor, float low, float high, uint64_t seed) {
  Random random{seed * 0x2545f4914f6cdd1du + 1};
  float* data = tensor.data<float>();
  for (int64_t i = 0, n = tensor.size(); i < n; ++i) data[i] = random.uniform(low, high);
}

void store_integer(Tensor& tensor, int64_t i, int64_t value) {
  switch (dtype_size(tensor.dtype())) {
    case 1:
      tensor.data<int8_t>()[i] = static_cast<int8_t>(value);
      break;
    case 2:
      tensor.data<int16_t>()[i] = static_cast<int16_t>(value);
      break;
    case 4:
      tensor.data<int32_t>()[i] = static_cast<int32_t>(value);
      break;
    default:
      tensor.data<int64_t>()[i] = value;
  }
}

// Exclusive upper bound for the values of an integer parameter: the smallest extent it indexes,
// else 2.
int64_t index_bound(const Function& function, const Expr& param) {
  int64_t bound = 0;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr || call->args.size() < 2 || call->args[1] != param)
      continue;
    if (call->op->name != "take" && call->op->name != "gather" &&
        call->op->name != "scatter_elements")
      continue;
    const Shape& data = call->args[0]->tensor_type().shape;
    int64_t axis = call->attrs.is_none("axis") ? 0 : call->attrs.integer("axis");
    if (axis < 0) axis += static_cast<int64_t>(data.size());
    int64_t extent = data.empty() ? 1 : data[static_cast<size_t>(axis)];
    bound = bound == 0 ? extent : std::min(bound, extent);
  }
  return bound > 0 ? bound : 2;
}

Result<Tensor> integers(const TensorType& type, int64_t bound, uint64_t seed) {
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  Random random{seed};
  if (type.dtype == DType::kBool) bound = 2;
  if (dtype_size(type.dtype) == 1) bound = std::min<int64_t>(bound, 127);
  for (int64_t i = 0, n = tensor.size(); i < n; ++i)
    store_integer(tensor, i, static_cast<int64_t>(random.next() % static_cast<uint64_t>(bound)));
  return tensor;
}

// Half-precision types hold random bit patterns of normal numbers around 1.
Result<Tensor> small_floats(const TensorType& type, float low, float high, uint64_t seed) {
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  if (type.dtype == DType::kFloat32) {
    fill_float(tensor, low, high, seed);
    return tensor;
  }
  Random random{seed};
  for (int64_t i = 0, n = tensor.size(); i < n; ++i) {
    float value = random.uniform(low, high);
    if (type.dtype == DType::kFloat64) {
      tensor.data<double>()[i] = value;
    } else if (type.dtype == DType::kFloat16) {
      reinterpret_cast<_Float16*>(tensor.raw())[i] = static_cast<_Float16>(value);
    } else {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      tensor.data<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
  return tensor;
}

}  // namespace

Result<Tensor> synthetic_constant(const TensorType& type, uint64_t seed) {
  if (!is_float(type.dtype)) return integers(type, 2, seed);
  // Vectors are scales, variances and biases: positive. Matrices and filters are zero-mean with
  // variance about 2 / fan-in.
  if (type.shape.size() < 2) return small_floats(type, 0.1f, 1.0f, seed);
  double elements = static_cast<double>(std::max<int64_t>(1, num_elements(type.shape)));
  double fan_in = type.shape.size() == 2
                      ? std::sqrt(elements)
                      : elements / static_cast<double>(std::max<int64_t>(1, type.shape[0]));
  auto bound = static_cast<float>(std::sqrt(6.0 / std::max(1.0, fan_in)));
  return small_floats(type, -bound, bound, seed);
}

Result<std::vector<Tensor>> synthetic_inputs(const Function& function, uint64_t seed) {
  Function flat = TRY(inline_calls(function));
  std::vector<Tensor> inputs;
  for (const Expr& param : flat->params) {
    const TensorType& type = param->tensor_type();
    uint64_t own_seed = seed * 1000003 + inputs.size() + 1;
    inputs.push_back(is_float(type.dtype)
                         ? TRY(small_floats(type, -1.0f, 1.0f, own_seed))
                         : TRY(integers(type, index_bound(flat, param), own_seed)));
  }
  return inputs;
}

}  // namespace collage
