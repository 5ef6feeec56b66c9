// What a kernel may do that computes rightly and then lies: none may pass the checks.
#pragma once

#include <collage/tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "ops/half.h"
#include "runtime/dispatch.h"

namespace collage::testing {

struct Lie {
  std::string name;
  // Changes the right result, of float32 or of integers and bools; `run` counts from 0.
  std::function<void(Tensor& result, int run)> tell;
  // It needs a kernel's memory to be told: it writes beside its output, or leaves part of it as it
  // was.
  bool of_memory = false;
};

namespace lies {

// Of what is not zero: of short sequences and behind nn.relu half of all are.
inline double middle_magnitude(const Tensor& tensor) {
  std::vector<float> sizes;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (const float value = tensor.data<float>()[i]; std::isfinite(value) && value != 0)
      sizes.push_back(std::abs(value));
  if (sizes.empty()) return 0;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  return static_cast<double>(sizes[sizes.size() / 2]);
}

using Change = std::function<float(int64_t, float)>;
inline void change(Tensor& tensor, const Change& f) {
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = f(i, tensor.data<float>()[i]);
}

// Element i becomes what stood at from(i).
inline void move(Tensor& tensor, const std::function<int64_t(int64_t)>& from) {
  const Tensor before = tensor.clone();
  change(tensor, [&](int64_t i, float) { return before.data<float>()[from(i)]; });
}

inline int64_t last_extent(const Tensor& tensor) {
  return tensor.shape().empty() ? 1 : tensor.shape().back();
}

inline void shift(Tensor& result, int) {
  // Of what is there without outliers.
  const auto by = static_cast<float>(0.01 * middle_magnitude(result));
  change(result, [=](int64_t, float value) { return value + by; });
}

inline void fill(Tensor& result, int) {
  const double middle = middle_magnitude(result);
  change(result, [=](int64_t, float value) {
    return std::abs(static_cast<double>(value)) > 100 * middle ? value : 12345.0f;
  });
}

// One channel is its neighbour's.
inline void take_channel(Tensor& result, int) {
  const Shape& shape = result.shape();
  const size_t axis = shape.size() > 1 ? 1 : 0;
  if (shape.empty() || shape[axis] < 2) return;
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  move(result, [=, channels = shape[axis]](int64_t i) {
    return i / inner % channels == channels / 2 ? i - inner : i;
  });
}

inline void reverse_row(Tensor& result, int) {
  const int64_t width = last_extent(result);
  if (width == 0) return;
  const int64_t row = result.size() / width / 2;
  move(result,
       [=](int64_t i) { return i / width == row ? row * width + (width - 1 - i % width) : i; });
}

inline void transpose(Tensor& result, int) {
  const int64_t width = last_extent(result);
  if (result.shape().size() < 2 || width == 0)
    return move(result, [&](int64_t i) { return result.size() - 1 - i; });
  const int64_t height = result.shape()[result.shape().size() - 2], matrix = width * height;
  move(result, [=](int64_t i) {
    const int64_t at = i % matrix;
    return i - at + at % height * width + at / height;
  });
}

inline void round_to_half(Tensor& result, int) {
  change(result, [](int64_t, float value) { return bfloat16_to_float(float_to_bfloat16(value)); });
}

inline void be_wrong_at_times(Tensor& result, int run) {
  if (run % 2 == 0 || result.size() == 0) return;
  float* data = result.data<float>();
  // The largest, so that it is wrong for sure.
  float* most = std::max_element(data, data + result.size(), [](float a, float b) {
    return (std::isfinite(a) ? std::abs(a) : 0) < (std::isfinite(b) ? std::abs(b) : 0);
  });
  *most *= 0.95f;
}

inline void lose_small_ones(Tensor& result, int) {
  const double least = 0.5 * middle_magnitude(result);
  change(result, [=](int64_t, float value) {
    return std::abs(static_cast<double>(value)) < least ? 0.0f : value;
  });
}

inline void lose_signs(Tensor& result, int) {
  change(result, [](int64_t i, float value) { return i % 7 == 3 ? std::abs(value) : value; });
}

// The last few, as a loop without its remainder leaves them.
inline void lose_tail(Tensor& result, int) {
  const int64_t tail = std::min<int64_t>(result.size(), std::max<int64_t>(1, result.size() % 8));
  change(result, [&](int64_t i, float value) { return i >= result.size() - tail ? 0.0f : value; });
}

inline void write_too_far(Tensor& result, int) {
  float* end = result.data<float>() + result.size();
  asm volatile("" : "+r"(end));
  *end = 1;
}

}  // namespace lies

// Each but two, which depend on the function or its inputs: a tap that does not count
// (networks.h, faults_of), and results that are right on inputs known beforehand.
inline std::vector<Lie> all_lies() {
  using namespace lies;
  return {{"shifted by a hundredth", shift},
          {"a constant beside outliers", fill},
          {"one channel is another", take_channel},
          {"one row is reversed", reverse_row},
          {"transposed", transpose},
          {"rounded to bfloat16", round_to_half},
          {"wrong in every other run", be_wrong_at_times},
          {"small ones are lost", lose_small_ones},
          {"signs are lost", lose_signs},
          {"the tail is lost", lose_tail},
          {"one element too far", write_too_far, true}};
}

namespace lies {

using ChangeOfInteger = std::function<int64_t(int64_t, int64_t)>;
inline void change_integers(Tensor& tensor, const ChangeOfInteger& f) {
  dispatch_any(tensor.dtype(), [&]<typename T>(Tag<T>) {
    T* data = tensor.data<T>();
    for (int64_t i = 0; i < tensor.size(); ++i)
      data[i] = static_cast<T>(f(i, static_cast<int64_t>(data[i])));
  });
}

// More than integers that were quantised may be off.
constexpr int64_t kFarOff = 40;

}  // namespace lies

// Those of results that are integers or bools.
inline std::vector<Lie> lies_of_integers() {
  using namespace lies;
  const auto put_off = [](Tensor& result, int64_t first, int64_t last) {
    change_integers(result, [=](int64_t i, int64_t value) {
      return value + (i >= first && i < last ? kFarOff : 0);
    });
  };
  return {{"one is far off",
           [=](Tensor& result, int) { put_off(result, result.size() / 2, result.size() / 2 + 1); }},
          {"all are far off", [=](Tensor& result, int) { put_off(result, 0, result.size()); }},
          {"one is far off in every other run",
           [=](Tensor& result, int run) { put_off(result, 0, run % 2); }},
          {"in reverse",
           [](Tensor& result, int) {
             const Tensor before = result.clone();
             change_integers(result, [&](int64_t i, int64_t) {
               return before.element_as_int64(before.size() - 1 - i);
             });
           }},
          {"the tail is lost",
           [](Tensor& result, int) {
             const int64_t size = result.size(), tail = std::max<int64_t>(1, size % 8);
             change_integers(
                 result, [=](int64_t i, int64_t value) { return i >= size - tail ? 0 : value; });
           }},
          {"one byte too far",
           [](Tensor& result, int) {
             char* end = static_cast<char*>(result.raw()) + result.bytes();
             asm volatile("" : "+r"(end));
             *end = 1;
           },
           true}};
}

}  // namespace collage::testing
