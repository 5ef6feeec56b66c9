#include "random_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "ir/text_printer.h"
#include "ops/half.h"
#include "ops/interpreter.h"
#include "passes/widen_halves.h"

namespace collage {

Tensor random_tensor(const TensorType& type, uint64_t seed, double low, double high) {
  std::mt19937_64 rng(seed + 17);
  std::uniform_real_distribution<double> real(low, high);
  Tensor tensor = Tensor::zeros(type.dtype, type.shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (type.dtype) {
      case DType::kFloat32:
        tensor.data<float>()[i] = static_cast<float>(real(rng));
        break;
      case DType::kFloat64:
        tensor.data<double>()[i] = real(rng);
        break;
      case DType::kFloat16:
      case DType::kBFloat16:
        tensor.data<uint16_t>()[i] = float_to_half(static_cast<float>(real(rng)), type.dtype);
        break;
      case DType::kInt32:
        tensor.data<int32_t>()[i] = static_cast<int32_t>(rng() % 8);
        break;
      case DType::kInt64:
        tensor.data<int64_t>()[i] = static_cast<int64_t>(rng() % 8);
        break;
      case DType::kInt8:
      case DType::kUInt8:
        tensor.data<uint8_t>()[i] = static_cast<uint8_t>(rng() % 256);
        break;
      case DType::kBool:
        tensor.data<uint8_t>()[i] = rng() % 2;
        break;
      default:
        break;
    }
  }
  return tensor;
}

void expect_same_values(const Function& a, const Function& b, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Expr& param : a->params)
    for (const TensorType& leaf : param->type().leaves())
      inputs.push_back(random_tensor(leaf, seed + 100 * inputs.size(), -2, 2));
  Result<std::vector<Tensor>> expected = interpret(a, inputs), actual = interpret(b, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  ASSERT_TRUE(actual.ok()) << actual.status().to_string();
  ASSERT_EQ(expected->size(), actual->size());
  const std::optional<DType> half = coarsest_half(Module(a));
  const double allowed = !half ? 1e-4 : *half == DType::kFloat16 ? 4e-3 : 3e-2;
  for (size_t k = 0; k < expected->size(); ++k) {
    const Tensor &x = (*expected)[k], &y = (*actual)[k];
    ASSERT_EQ(x.dtype(), y.dtype());
    ASSERT_EQ(x.shape(), y.shape());
    double largest = 0;
    for (int64_t i = 0; i < x.size(); ++i)
      if (std::isfinite(x.element_as_double(i)))
        largest = std::max(largest, std::abs(x.element_as_double(i)));
    for (int64_t i = 0; i < x.size(); ++i) {
      double u = x.element_as_double(i), v = y.element_as_double(i);
      bool same = u == v || (std::isnan(u) && std::isnan(v)) ||
                  (std::isfinite(u) && std::abs(u - v) <= allowed * (largest + std::abs(u)));
      ASSERT_TRUE(same) << "result " << k << ", element " << i << ": " << u << " and " << v << "\n"
                        << to_text(a) << to_text(b);
    }
  }
}

}  // namespace collage
