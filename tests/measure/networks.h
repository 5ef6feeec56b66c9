// Functions of realistic depth, with weights as measuring makes them, and faults in them.
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"
#include "verify/rounding_error.h"

namespace collage::testing {

// Constants of a network, each with values of its own.
class Weights {
 public:
  Expr of(Shape shape);

 private:
  uint64_t seed_ = 100;
};

// Residual blocks on an image, two 3x3 convolutions with biases and rectifiers in each.
Expr residual_blocks(Expr image, int blocks, Weights& weights);
// A 3x3 convolution, blocks, pooling over the image and a matrix product.
Function residual_network(int blocks, int64_t channels, int64_t side);
// Layers of attention and of two products with GELU between, each after a norm, on rows of numbers.
Function transformer(int layers, int64_t rows, int64_t width);

// The function in float64, constants widened, and its results, rounded to float32.
std::vector<Tensor> evaluate_in_double(const Function& function, const std::vector<Tensor>& inputs);

// What is wrong in a kernel, and the function that it computes.
struct Fault {
  std::string name;
  Function function;
};
// For each constant one element that counts as zero: a tap or an entry of a bias; for each real
// parameter one channel that does.
std::vector<Fault> faults_of(const Function& function);

// A function on data as trials use it, the same in every process.
RoundingErrors on_trial_data(const Function& function);

}  // namespace collage::testing
