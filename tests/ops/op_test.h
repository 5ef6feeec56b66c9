// Helpers of the operators' tests: run one call on given tensors, or ask for its type.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"

namespace collage {

inline Result<Expr> try_call(std::string_view op, const std::vector<TensorType>& types,
                             Attrs attrs = {}, bool as_tuple = false) {
  register_all_ops();
  std::vector<Expr> args;
  for (const TensorType& type : types) args.push_back(make_var("x", type));
  if (as_tuple) args = {make_tuple(std::move(args))};
  return make_call(op, std::move(args), std::move(attrs));
}

// The results of one call, or why not.
inline Result<std::vector<Tensor>> try_run(std::string_view op, const std::vector<Tensor>& inputs,
                                           Attrs attrs = {}, bool as_tuple = false) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back({input.shape(), input.dtype()});
  Result<Expr> call = try_call(op, types, std::move(attrs), as_tuple);
  if (!call) return call.status();
  return evaluate_call(*as<CallNode>(*call), inputs);
}

inline std::vector<Tensor> run_all(std::string_view op, const std::vector<Tensor>& inputs,
                                   Attrs attrs = {}, bool as_tuple = false) {
  auto result = try_run(op, inputs, std::move(attrs), as_tuple);
  if (!result) {
    ADD_FAILURE() << result.status().to_string();
    return {Tensor::empty(DType::kFloat32, {0}), Tensor::empty(DType::kInt64, {0})};
  }
  return *result;
}

inline Tensor run(std::string_view op, const std::vector<Tensor>& inputs, Attrs attrs = {},
                  bool as_tuple = false) {
  return run_all(op, inputs, std::move(attrs), as_tuple)[0];
}

inline Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(std::move(shape), values);
}
inline Tensor ints(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(std::move(shape), values);
}
inline Tensor bools(Shape shape, const std::vector<uint8_t>& values) {
  Tensor tensor = Tensor::zeros(DType::kBool, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.data<uint8_t>()[i] = values[i];
  return tensor;
}
inline Tensor random(Shape shape, uint64_t seed, ValueRange range = {}) {
  return random_tensor({std::move(shape), DType::kFloat32}, seed, range);
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}
inline std::vector<float> floats_of(const Tensor& tensor) { return values_of<float>(tensor); }

// Steps through every index of a shape: for (Index i(shape); i; ++i) use(*i, i.flat()).
class Index {
 public:
  explicit Index(Shape shape)
      : shape_(std::move(shape)), index_(shape_.size(), 0), count_(num_elements(shape_)) {}
  explicit operator bool() const { return flat_ < count_; }
  void operator++() {
    ++flat_;
    for (size_t d = shape_.size(); d-- > 0;) {
      if (++index_[d] < shape_[d]) return;
      index_[d] = 0;
    }
  }
  const Shape& operator*() const { return index_; }
  int64_t operator[](size_t d) const { return index_[d]; }
  int64_t flat() const { return flat_; }

 private:
  Shape shape_, index_;
  int64_t count_, flat_ = 0;
};

// Row-major position of an index.
inline int64_t position(const Shape& shape, const Shape& index) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return at;
}
inline float at(const Tensor& tensor, const Shape& index) {
  return tensor.data<float>()[position(tensor.shape(), index)];
}

inline void expect_near(const Tensor& actual, const std::vector<double>& expected,
                        double tolerance = 1e-6) {
  ASSERT_EQ(static_cast<size_t>(actual.size()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.element_as_double(static_cast<int64_t>(i)), expected[i],
                tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i;
}

}  // namespace collage
