// Composite: a candidate's function as oneDNN sees it: one anchor (a convolution, a product, a
// pooling …) over tensors that flow in, then a chain of elementwise steps on its result. A chain
// without an anchor starts from a tensor itself.
//
//   conv2d(x, w) -> + bias -> swish -> + residual     anchor conv2d over (x, w), steps add, swish,
//   add add(x, y) -> relu                                 no anchor, source x, steps add y, relu
//
// After a product of integers (qnn.*) the running value may be rounded to integers, at the end or
// in between, and tensors of qnn.dequantize may be added to it:
//
//   qnn.conv2d(x, w, …) -> + bias -> quantize -> dequantize -> + dequantize(y) -> relu -> quantize
#pragma once

#include <collage/tensor.h>

#include <optional>
#include <vector>

#include "backend/onednn/kernels/library.h"
#include "ir/expr.h"

namespace collage::onednn {

// A tensor that flows into the composite.
struct Operand {
  int param = -1;      // the function's parameter, or -1:
  Tensor constant;     // an embedded constant
  Type type = kFloat;  // of the function's tensor, where it is one of oneDNN's
  Shape shape;         // of a step's operand: aligned with the running value, as many dimensions
  size_t rank = 0;     // dimensions as given

  bool is_constant() const { return param < 0; }
  // Returns the value of a constant with one element.
  std::optional<float> scalar() const;
};

// running = algorithm(running) or algorithm(running, operand).
struct Step {
  enum class Kind { kEltwise, kBinary };
  Kind kind = Kind::kEltwise;
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;  // of an eltwise step
  Operand operand;            // of a binary step; broadcasts to the running value
};

// The types of a composite's tensors: float32, integers of 8 bits, or bfloat16 in a lowered
// variant. The anchor reads `source`; `result` is the type of the result and, unless it is an
// integer, of the steps' operands that are float32 in the function. Constants other than weights
// stay float32.
struct Types {
  Type source = kFloat, result = kFloat;
  bool lowered() const { return source == kBrainFloat || result == kBrainFloat; }
  bool bytes() const { return is_byte(source) || is_byte(result); }
};

// The real numbers of integers: scale * (q - zero_point).
struct Quantisation {
  float scale = 1;
  int32_t zero_point = 0;
};
// Takes constants of one element.
Result<Quantisation> quantisation_of(const Expr& scale, const Expr& zero_point);

struct Composite {
  Types types;
  Function function;                 // flat; keeps everything below alive
  const CallNode* anchor = nullptr;  // null: a chain only
  std::vector<Operand> inputs;       // the anchor's arguments, tuples flattened; or the one source
  std::vector<Step> steps;
  std::optional<Quantisation> rounded;  // after the steps: what the result's integers stand for
  Shape anchor_shape;                   // of the anchor's result (the source's when there is none)
  Shape result;                         // of the whole

  // Returns whether the anchor multiplies integers.
  bool quantised() const;
};

// Reads a function (which may hold Composite calls). Refuses types other than float32 and integers
// of 8 bits, several results, and anything but an anchor followed by a chain.
Result<Composite> parse_composite(const Function& function);

// Returns whether calls of this operator can be steps of a chain; the operands decide the rest.
bool is_step_operator(std::string_view op_name);

}  // namespace collage::onednn
