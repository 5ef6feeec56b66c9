// The state that one thread runs a program with: memory for intermediate results, and the state
// that kernels keep between runs. Contexts of one program share its code and its weights.
#pragma once

#include <collage/result.h>
#include <collage/tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace collage {

// Name, shape (row-major, every dimension known) and dtype of a model's input or output.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

// An input or output whose shape a run decides: dimensions are numbers, names ("batch"), sums
// ("past + sequence"), or "?" if only a run determines them.
struct DynamicTensorInfo {
  std::string name;
  std::vector<std::string> dims;
  DType dtype = DType::kFloat32;
  bool has_shape = true;  // false: the rank is not known either, and dims is empty
};

class Executor;

// Movable. Any thread may use it, one at a time; different contexts run at once.
class Context {
 public:
  // Takes inputs in the program's order, with its shapes and dtypes (kBadModel otherwise).
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // Writes into tensors of the caller, allocated with the outputs' shapes and dtypes. kBadModel:
  // one overlaps an input or another output.
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

  explicit Context(std::unique_ptr<Executor> executor);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

 private:
  std::unique_ptr<Executor> executor_;
};

}  // namespace collage
