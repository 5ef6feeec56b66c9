#include "arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "ir/op.h"
#include "ops/half.h"

namespace collage::testing {

namespace {

// sum(count, a, b) = the sum of a(k) * b(k).
using Factor = std::function<float(int64_t)>;
using Sum = std::function<float(int64_t count, const Factor& a, const Factor& b)>;

bool is_plain_convolution(const CallNode& call) {
  return call.op != nullptr && call.op->name == "nn.conv2d" &&
         call.args[1]->tensor_type().shape[2] == 3 && call.attrs.integer("groups") == 1 &&
         call.attrs.ints("strides") == Ints{1, 1} && call.attrs.ints("padding") == Ints{1, 1, 1, 1};
}
bool is_dense(const CallNode& call) { return call.op != nullptr && call.op->name == "nn.dense"; }

Tensor convolution(const CallNode& call, const Tensor& data, const Tensor& weights,
                   const Sum& sum) {
  Tensor result = Tensor::empty(DType::kFloat32, call.tensor_type().shape);
  const int64_t inputs = data.shape()[1], height = data.shape()[2], width = data.shape()[3];
  const int64_t outputs = weights.shape()[0], terms = inputs * 9;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        result.data<float>()[(o * height + y) * width + x] = sum(
            terms,
            [&](int64_t k) {
              const int64_t row = y + k / 3 % 3 - 1, column = x + k % 3 - 1;
              if (row < 0 || row >= height || column < 0 || column >= width) return 0.0f;
              return data.data<float>()[(k / 9 * height + row) * width + column];
            },
            [&](int64_t k) { return weights.data<float>()[o * terms + k]; });
  return result;
}

Tensor dense(const CallNode& call, const Tensor& data, const Tensor& weights, const Sum& sum) {
  Tensor result = Tensor::empty(DType::kFloat32, call.tensor_type().shape);
  const int64_t units = weights.shape()[0], terms = weights.shape()[1];
  for (int64_t i = 0; i < result.size(); ++i)
    result.data<float>()[i] = sum(
        terms, [&](int64_t k) { return data.data<float>()[i / units * terms + k]; },
        [&](int64_t k) { return weights.data<float>()[i % units * terms + k]; });
  return result;
}

EvaluateCall with_sums(const Sum& sum) {
  return [sum](const CallNode& call, std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
    if (is_plain_convolution(call))
      return std::vector<Tensor>{convolution(call, given[0], given[1], sum)};
    if (is_dense(call)) return std::vector<Tensor>{dense(call, given[0], given[1], sum)};
    return evaluate_call(call, given);
  };
}

float add_forward(int64_t count, const Factor& a, const Factor& b) {
  float total = 0;
  for (int64_t k = 0; k < count; ++k) total = std::fma(a(k), b(k), total);
  return total;
}

float as_bfloat16(float value) { return bfloat16_to_float(float_to_bfloat16(value)); }

Tensor mapped(const Tensor& tensor, const std::function<float(int64_t, float)>& f) {
  Tensor result = tensor.clone();
  for (int64_t i = 0; i < tensor.size(); ++i)
    result.data<float>()[i] = f(i, tensor.data<float>()[i]);
  return result;
}

// Multiples of a part of the largest of each run of so many elements.
Tensor in_units(const Tensor& tensor, int64_t run, float limit) {
  std::vector<float> largest(static_cast<size_t>(tensor.size() / run), 0);
  const auto of = [&](int64_t i) -> float& { return largest[static_cast<size_t>(i / run)]; };
  for (int64_t i = 0; i < tensor.size(); ++i)
    of(i) = std::max(of(i), std::abs(tensor.data<float>()[i]));
  return mapped(tensor, [&](int64_t i, float value) {
    const float unit = of(i) / limit;
    return unit == 0 ? 0 : std::round(value / unit) * unit;
  });
}

// Winograd's matrices at the usual points: 0, 1, -1, infinity, and for four outputs 2 and -2.
template <int kOutputs>
struct Matrices;
template <>
struct Matrices<2> {
  static constexpr float kB[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  static constexpr float kG[4][3] = {{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}};
  static constexpr float kA[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
};
template <>
struct Matrices<4> {
  static constexpr float kB[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0},
                                     {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0},
                                     {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  static constexpr float kG[6][3] = {{1.f / 4, 0, 0},
                                     {-1.f / 6, -1.f / 6, -1.f / 6},
                                     {-1.f / 6, 1.f / 6, -1.f / 6},
                                     {1.f / 24, 1.f / 12, 1.f / 6},
                                     {1.f / 24, -1.f / 12, 1.f / 6},
                                     {0, 0, 1}};
  static constexpr float kA[4][6] = {
      {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
};

// matrix · from · matrix^T
template <size_t kRows, size_t kColumns>
std::array<std::array<float, kRows>, kRows> transformed(
    const float (&matrix)[kRows][kColumns],
    const std::array<std::array<float, kColumns>, kColumns>& from) {
  float half[kRows][kColumns] = {};
  std::array<std::array<float, kRows>, kRows> result{};
  for (size_t r = 0; r < kRows; ++r)
    for (size_t c = 0; c < kColumns; ++c)
      for (size_t k = 0; k < kColumns; ++k) half[r][c] += matrix[r][k] * from[k][c];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t c = 0; c < kRows; ++c)
      for (size_t k = 0; k < kColumns; ++k) result[r][c] += half[r][k] * matrix[c][k];
  return result;
}

template <int kOutputs>
Tensor winograd_convolution(const CallNode& call, const Tensor& data, const Tensor& weights) {
  constexpr auto kSide = static_cast<size_t>(kOutputs + 2);
  using M = Matrices<kOutputs>;
  using Patch = std::array<std::array<float, kSide>, kSide>;
  Tensor result = Tensor::empty(DType::kFloat32, call.tensor_type().shape);
  const int64_t inputs = data.shape()[1], height = data.shape()[2], width = data.shape()[3];
  const int64_t outputs = weights.shape()[0];
  std::vector<Patch> filters;
  for (int64_t f = 0; f < outputs * inputs; ++f) {
    std::array<std::array<float, 3>, 3> taps;
    for (size_t k = 0; k < 9; ++k)
      taps[k / 3][k % 3] = weights.data<float>()[f * 9 + static_cast<int64_t>(k)];
    filters.push_back(transformed(M::kG, taps));
  }
  for (int64_t y = 0; y < height; y += kOutputs)
    for (int64_t x = 0; x < width; x += kOutputs) {
      std::vector<Patch> images;
      for (int64_t c = 0; c < inputs; ++c) {
        Patch patch{};
        for (size_t i = 0; i < kSide; ++i)
          for (size_t j = 0; j < kSide; ++j) {
            const int64_t row = y + static_cast<int64_t>(i) - 1;
            const int64_t column = x + static_cast<int64_t>(j) - 1;
            if (row >= 0 && row < height && column >= 0 && column < width)
              patch[i][j] = data.data<float>()[(c * height + row) * width + column];
          }
        images.push_back(transformed(M::kB, patch));
      }
      for (int64_t o = 0; o < outputs; ++o) {
        Patch sums{};
        for (int64_t c = 0; c < inputs; ++c)
          for (size_t i = 0; i < kSide; ++i)
            for (size_t j = 0; j < kSide; ++j)
              sums[i][j] = std::fma(images[static_cast<size_t>(c)][i][j],
                                    filters[static_cast<size_t>(o * inputs + c)][i][j], sums[i][j]);
        const auto pixels = transformed(M::kA, sums);
        for (int64_t i = 0; i < std::min<int64_t>(kOutputs, height - y); ++i)
          for (int64_t j = 0; j < std::min<int64_t>(kOutputs, width - x); ++j)
            result.data<float>()[(o * height + y + i) * width + x + j] =
                pixels[static_cast<size_t>(i)][static_cast<size_t>(j)];
      }
    }
  return result;
}

}  // namespace

Arithmetic forward_sums() { return {"forward sums", {}, with_sums(add_forward)}; }

Arithmetic backward_sums() {
  return {"backward sums", {}, with_sums([](int64_t count, const Factor& a, const Factor& b) {
            return add_forward(
                count, [&](int64_t k) { return a(count - 1 - k); },
                [&](int64_t k) { return b(count - 1 - k); });
          })};
}

Arithmetic winograd(int outputs) {
  return {"winograd", outputs == 2 ? rounding::kWinograd2 : rounding::kWinograd4,
          [outputs, others = forward_sums().evaluate](
              const CallNode& call, std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
            if (!is_plain_convolution(call)) return others(call, given);
            return std::vector<Tensor>{outputs == 2
                                           ? winograd_convolution<2>(call, given[0], given[1])
                                           : winograd_convolution<4>(call, given[0], given[1])};
          }};
}

Arithmetic bfloat16_pairs() {
  const auto high = [](float value) { return as_bfloat16(value); };
  const auto low = [](float value) { return as_bfloat16(value - as_bfloat16(value)); };
  return {"bfloat16 pairs", rounding::kBFloat16Pairs,
          with_sums([=](int64_t count, const Factor& a, const Factor& b) {
            float total = 0;
            for (int64_t k = 0; k < count; ++k) {
              const float x = a(k), w = b(k);
              total = std::fma(low(x), high(w), total);
              total = std::fma(high(x), low(w), total);
              total = std::fma(high(x), high(w), total);
            }
            return total;
          })};
}

Arithmetic bfloat16() {
  const auto rounded = [](const Tensor& tensor) {
    if (tensor.dtype() != DType::kFloat32) return tensor;
    return mapped(tensor, [](int64_t, float value) { return as_bfloat16(value); });
  };
  return {"bfloat16", rounding::kBFloat16,
          [rounded](const CallNode& call,
                    std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
            std::vector<Tensor> arguments;
            for (const Tensor& tensor : given) arguments.push_back(rounded(tensor));
            std::vector<Tensor> results = TRY(evaluate_call(call, arguments));
            for (Tensor& result : results) result = rounded(result);
            return results;
          }};
}

Arithmetic integers(int bits) {
  const auto limit = static_cast<float>((1 << bits) - 1);
  return {
      "integers",
      {.fixed_point = std::ldexp(1.0, -bits - 1)},
      [limit](const CallNode& call, std::span<const Tensor> given) -> Result<std::vector<Tensor>> {
        if (!is_plain_convolution(call) && !is_dense(call)) return evaluate_call(call, given);
        const int64_t column = given[1].size() / given[1].shape()[0];
        const std::vector<Tensor> rounded = {in_units(given[0], given[0].size(), 8191),
                                             in_units(given[1], column, limit)};
        return evaluate_call(call, rounded);
      }};
}

}  // namespace collage::testing
