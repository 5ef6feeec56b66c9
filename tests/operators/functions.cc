// Functions and an operator that calls one as a plugin, of the public headers alone.
#include <collage/functions.h>
#include <collage/operators.h>

#include <algorithm>

namespace {

using collage::ArrayType, collage::Tensor;

collage::Result<std::vector<ArrayType>> matrix(std::span<const ArrayType> inputs) {
  if (inputs.size() != 1 || inputs[0].shape.size() != 2 ||
      inputs[0].dtype != collage::DType::kFloat32)
    return collage::Status(collage::ErrorCode::kBadModel, "takes a matrix of float32");
  return std::vector<ArrayType>{inputs[0]};
}

// The greatest element of each row, and where it is.
collage::Result<std::vector<ArrayType>> best_types(std::span<const ArrayType> inputs) {
  auto given = matrix(inputs);
  if (!given.ok()) return given;
  const collage::Shape rows{inputs[0].shape[0]};
  return std::vector<ArrayType>{{rows, collage::DType::kFloat32}, {rows, collage::DType::kInt64}};
}

collage::Status best(std::span<const Tensor> inputs, std::span<Tensor> results) {
  const int64_t rows = inputs[0].shape()[0], columns = inputs[0].shape()[1];
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = inputs[0].data<float>() + i * columns;
    const float* found = std::max_element(row, row + columns);
    results[0].data<float>()[i] = *found;
    results[1].data<int64_t>()[i] = found - row;
  }
  return {};
}

collage::Status cumulate(std::span<const Tensor> inputs, std::span<Tensor> results) {
  const int64_t rows = inputs[0].shape()[0], columns = inputs[0].shape()[1];
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      sum += inputs[0].data<float>()[i * columns + j];
      results[0].data<float>()[i * columns + j] = sum;
    }
  }
  return {};
}

}  // namespace

COLLAGE_REGISTER([]() -> collage::Status {
  for (collage::FunctionDefinition definition :
       {collage::FunctionDefinition{
            .label = "test.best", .types = best_types, .call = best, .onnx = "com.example::Best"},
        collage::FunctionDefinition{.label = "test.cumulate", .types = matrix, .call = cumulate}})
    if (auto status = collage::register_function(std::move(definition)); !status.ok())
      return status;
  return collage::define_operator({.name = "test.cumulated",
                                   .onnx = "com.example::Cumulated",
                                   .program = R"(program (n, d, scale: float32 = 1.0) {
                                     param X: float32[n, d];
                                     stage S[i:n, j:d] = extern "test.cumulate"(X): float32;
                                     result Y[i:n, j:d] = S[i, j] * scale;
                                   })",
                                   .cases = {{{"n", 3}, {"d", 7}}}});
})
