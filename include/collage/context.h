// The state that one thread runs a program with: memory for intermediate results, states, and what
// kernels keep between runs. Contexts of one program share its code and its weights.
#pragma once

#include <collage/result.h>
#include <collage/tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace collage {

// An input or output of a model or program.
struct TensorInfo {
  std::string name;
  Shape shape = {};  // row-major; -1 if a run decides
  DType dtype = DType::kFloat32;
  // One for each dimension if a run decides shapes: a number, a name ("batch"), a sum ("past +
  // sequence"), or "?" if only a run determines it. Empty if all shapes are fixed.
  std::vector<std::string> dims = {};
  bool has_shape = true;  // false: the rank is not known either
};

namespace internal {
struct ContextImpl;
}

// Movable. Any thread may use it, one at a time; different contexts run at once.
class Context {
 public:
  // Takes inputs in the program's order, of its types (kBadModel otherwise). A program of several
  // shapes pads them to its buckets, if any, and runs the specialisation for them; kUnavailable:
  // there is none. The first run of a specialisation loads its code.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // Writes into tensors of the caller, of the outputs' types; makes those that are not defined.
  // kBadModel: one overlaps an input or another output.
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
  // Empties the states (DynamicOptions::states).
  void reset();

  explicit Context(std::unique_ptr<internal::ContextImpl> impl);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

 private:
  std::unique_ptr<internal::ContextImpl> impl_;
};

}  // namespace collage
