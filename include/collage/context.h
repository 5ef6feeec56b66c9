// What one thread runs a program with: memory for intermediate results and what kernels keep
// between runs. Contexts of one program share its code and its weights.
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

// Of a program whose shapes a run decides: dimensions are numbers, names ("batch"), sums ("past +
// sequence"), or "?" where only a run tells.
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
  // Inputs in the program's order, shapes and dtypes equal to its (kBadModel otherwise).
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // The same into tensors of the caller, allocated with the outputs' shapes and dtypes; kBadModel
  // where one overlaps an input or another output.
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

  explicit Context(std::unique_ptr<Executor> executor);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

 private:
  std::unique_ptr<Executor> executor_;
};

}  // namespace collage
