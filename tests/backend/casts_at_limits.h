// Casts between all types of numbers, of values at the limits of the types and beyond them. What is
// out of range has one answer whoever computes it (runtime/casts.h).
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ops/half.h"
#include "ops/registry.h"
#include "runtime/dispatch.h"

namespace collage::testing {

struct CastAtLimits {
  std::string name;  // "float32 to int8"
  Function function;
  Tensor input;
};

// A value of any type; of reals all that matters to some other type.
inline Tensor values_at_limits(DType dtype) {
  if (is_half(dtype)) {
    const Tensor values = values_at_limits(DType::kFloat32);
    Tensor tensor = Tensor::empty(dtype, values.shape());
    floats_to_halves(values.data<float>(), dtype, values.size(), tensor.data<uint16_t>());
    return tensor;
  }
  std::vector<double> values = {0,      0.5,   1,      1.9,        126.9,           127,
                                127.5,  128,   128.5,  255,        255.9,           256,
                                300,    32767, 32768,  32767.5,    65535,           65536,
                                65504,  65519, 65520,  70000,      16777217.0,      0x1p31 - 128,
                                0x1p31, 3e9,   0x1p32, 1e10,       0x1p63 - 0x1p39, 0x1p63,
                                0x1p64, 1e19,  3e38,   0x1.fep127, 0x1p-24};
  for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  Tensor tensor;
  dispatch_number(dtype, [&]<typename T>(Tag<T>) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> held;
    for (double value : values) {
      if constexpr (std::is_integral_v<T>) {
        if (value != static_cast<double>(static_cast<int64_t>(std::clamp(value, -9e18, 9e18))) ||
            value < static_cast<double>(Limits::lowest()) ||
            value >= static_cast<double>(Limits::max()))
          continue;
      }
      held.push_back(static_cast<T>(value));
    }
    held.push_back(Limits::lowest());
    held.push_back(Limits::max());
    if constexpr (std::is_floating_point_v<T>)
      for (T special : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
        held.push_back(special);
    const std::vector<T> once = held;
    while (held.size() < 75) held.insert(held.end(), once.begin(), once.end());
    tensor = Tensor::from<T>({static_cast<int64_t>(held.size())}, held);
  });
  return tensor;
}

inline std::vector<CastAtLimits> casts_at_limits() {
  const std::vector<DType> types = {DType::kFloat32, DType::kFloat64, DType::kInt8,
                                    DType::kUInt8,   DType::kInt16,   DType::kUInt16,
                                    DType::kInt32,   DType::kUInt32,  DType::kInt64,
                                    DType::kUInt64,  DType::kFloat16, DType::kBFloat16};
  register_all_ops();
  std::vector<CastAtLimits> casts;
  for (DType from : types)
    for (DType to : types) {
      if (from == to) continue;
      const Tensor input = values_at_limits(from);
      const Expr x = make_var("x", TensorType{input.shape(), from});
      casts.push_back({std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)),
                       make_function({x}, make_call("cast", {x}, {{"dtype", to}}).value()), input});
    }
  return casts;
}

}  // namespace collage::testing
