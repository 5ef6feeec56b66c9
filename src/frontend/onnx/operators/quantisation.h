// Quantised tensors of ONNX, integers with a scale and a zero point as further inputs, in terms of
// qnn.quantize and qnn.dequantize. Operators on integers become the operator on real numbers
// between the two; passes convert those that backends support back to integers.
#pragma once

#include <optional>

#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

// Positions of a tensor's inputs. A missing zero point is zero.
struct QuantisedInput {
  size_t data, scale, zero_point;
};

// A scale, float32, and a zero point, int32: scalars, or vectors of the same extent.
struct QuantisationParameters {
  Expr scale, zero_point;
};
Result<QuantisationParameters> quantisation_parameters(NodeContext& node, size_t scale,
                                                       size_t zero_point);

// Checks that the zero point, if there is one, has the type of the integers.
Status check_zero_point(NodeContext& node, size_t zero_point, DType integers);

// Returns the real numbers, float32. Scales of more than one value lie along `axis`; without an
// axis there must be one scale.
Result<Expr> dequantised(NodeContext& node, const QuantisedInput& input,
                         std::optional<int64_t> axis = std::nullopt);
// Quantises real numbers, of any type, to integers of type `to`.
Result<Expr> quantised(NodeContext& node, const Expr& real, const QuantisationParameters& by,
                       DType to, int64_t axis = -1);
// Quantises by the node's inputs, with one scale; to the zero point's type, or `fallback` without
// one.
Result<Expr> quantised(NodeContext& node, const Expr& real, size_t scale, size_t zero_point,
                       DType fallback);

// Dequantises a bias of int32 under a product whose operands have these scales.
Result<Expr> dequantised_bias(NodeContext& node, const Expr& bias, const Expr& scale_a,
                              const Expr& scale_b, double factor, int64_t axis);

// Scale, zero point and integers of uint8 of real numbers, from their own range.
struct DynamicallyQuantised {
  Expr data, scale, zero_point;  // of uint8, float32, int32
};
Result<DynamicallyQuantised> dynamically_quantised(NodeContext& node, const Expr& real);

// Converts as the standard operator of that name on these inputs, with the node's attributes.
Result<Expr> as_standard(NodeContext& node, const char* op, std::vector<Expr> inputs);

}  // namespace collage::frontend
