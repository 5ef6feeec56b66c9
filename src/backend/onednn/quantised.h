// Products of 8-bit integers (qnn.conv*, qnn.dense, qnn.matmul) in oneDNN's words: signed weights
// with a scale for all channels or one for each and one zero point, which convolutions want to be
// 0; a source and a result, where that is of integers, with one scale and zero point each. These
// numbers are no part of a primitive but values that it reads when it runs.
//
// Unsigned weights less 128 are signed ones, with a zero point that is less by as much.
//
// oneDNN computes  sum (x - x's zero point) * w  in 32 bits, multiplies it by both scales, adds the
// float32 bias, does the post operations, divides by the result's scale, adds its zero point,
// rounds and saturates.
#pragma once

#include "backend/onednn/composite.h"
#include "backend/onednn/kernels/program.h"

namespace collage::onednn {

// Returns whether the processor has them for bytes. Without, oneDNN adds products up in 16 bits,
// which saturate.
bool has_dot_products();

// Scales or zero points of one argument.
struct AttributeValues {
  int arg = 0;   // DNNL_ARG_ATTR_SCALES or DNNL_ARG_ATTR_ZERO_POINTS, with the argument
  int mask = 0;  // the dimensions of it that they vary along
  Tensor values;
  int param = -1;  // the parameter that has them, an int32 number, in place of `values`
};

// Returns the attribute values of one argument's integers; a zero point of 0 is left out.
std::vector<AttributeValues> attribute_values(int arg, const Quantisation& quantisation);
Masks masks_of(const std::vector<AttributeValues>& list);
void bind_attribute_values(ProgramBuilder& builder, const std::vector<AttributeValues>& list,
                           Bindings& bindings);

// The difference of unsigned and signed integers.
inline constexpr int32_t kSignOffset = 128;

struct QuantisedProduct {
  Tensor weights;  // int8; none where they are computed
  Quantisation source;
  int source_zero_point = -1;     // the parameter that has it, in place of `source`
  Tensor weight_scales;           // one, or one for each channel
  int32_t weight_zero_point = 0;  // of signed weights
  std::optional<Quantisation> result;

  // `channels`: a mask of the weights' dimensions.
  std::vector<AttributeValues> attributes(int channels) const;
};

// Checks whether oneDNN computes the call for any values; only the zero points matter.
Status can_multiply(const CallNode& call);
// Reads a composite whose anchor is a product of integers.
Result<QuantisedProduct> read_quantised(const Composite& composite);

}  // namespace collage::onednn
