#include "backend/onednn/quantised.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/quantised.h"

namespace collage::onednn {

namespace {

// More terms could leave 32 bits.
constexpr int64_t kMostTerms = 1 << 15;

// Products that one element of the result is the sum of.
int64_t terms_of(const CallNode& call) {
  const Shape &data = call.args[0]->tensor_type().shape,
              &weights = call.args[1]->tensor_type().shape;
  if (call.op->name.starts_with("qnn.conv"))
    return num_elements(Shape(weights.begin() + 1, weights.end()));
  const bool transposed = call.op->name == "qnn.matmul" && call.attrs.flag("transpose_a");
  return data.empty() ? 1 : transposed && data.size() > 1 ? data[data.size() - 2] : data.back();
}

// Of weights as signed integers.
Result<int32_t> weight_zero_point(const CallNode& call) {
  const auto* zero = as<ConstantNode>(call.args[5]);
  if (zero == nullptr || zero->value.size() == 0)
    return unsupported("onednn: zero points that are not constant");
  const int64_t first = zero->value.element_as_int64(0);
  for (int64_t i = 1; i < zero->value.size(); ++i)
    if (zero->value.element_as_int64(i) != first)
      return unsupported("onednn: weights with different zero points");
  const bool is_signed = call.args[1]->tensor_type().dtype == DType::kInt8;
  return static_cast<int32_t>(first) - (is_signed ? 0 : kSignOffset);
}

// With a kernel of one element, which steps over some of its data.
bool is_strided_pointwise(const CallNode& call) {
  if (!call.op->name.starts_with("qnn.conv")) return false;
  const Shape& weights = call.args[1]->tensor_type().shape;
  const Ints& strides = call.attrs.ints("strides");
  const auto is_one = [](int64_t n) { return n == 1; };
  return std::all_of(weights.begin() + 2, weights.end(), is_one) &&
         !std::all_of(strides.begin(), strides.end(), is_one);
}

Tensor with_sign(const Tensor& bytes) {
  Tensor result = Tensor::empty(DType::kInt8, bytes.shape());
  const auto* from = bytes.data<uint8_t>();
  auto* to = result.data<int8_t>();
  for (int64_t i = 0; i < bytes.size(); ++i) to[i] = static_cast<int8_t>(from[i] - kSignOffset);
  return result;
}

// Of the product's data; a product of matrices may have a zero point that is computed.
Result<Quantisation> source_quantisation(const CallNode& call) {
  const bool computed = call.args[3]->kind() != ExprKind::kConstant &&
                        num_elements(call.args[3]->tensor_type().shape) == 1 &&
                        !call.op->name.starts_with("qnn.conv");
  return quantisation_of(call.args[2], computed ? make_scalar<int32_t>(0) : call.args[3]);
}

Tensor number(float value) { return Tensor::scalar<float>(value); }
Tensor number(int32_t value) { return Tensor::scalar<int32_t>(value); }

}  // namespace

bool has_dot_products() {
  static const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

std::vector<AttributeValues> attribute_values(int arg, const Quantisation& quantisation) {
  std::vector<AttributeValues> list = {{DNNL_ARG_ATTR_SCALES | arg, 0, number(quantisation.scale)}};
  if (quantisation.zero_point != 0)
    list.push_back({DNNL_ARG_ATTR_ZERO_POINTS | arg, 0, number(quantisation.zero_point)});
  return list;
}

Masks masks_of(const std::vector<AttributeValues>& list) {
  Masks masks;
  for (const AttributeValues& entry : list) masks.emplace_back(entry.arg, entry.mask);
  return masks;
}

void bind_attribute_values(ProgramBuilder& builder, const std::vector<AttributeValues>& list,
                           Bindings& bindings) {
  for (const AttributeValues& entry : list) {
    if (entry.param >= 0) {
      const Desc desc({1}, Type::s32, Tag::a);
      bindings.push_back({entry.arg, builder.input(static_cast<size_t>(entry.param), desc)});
      continue;
    }
    const Type type = entry.values.dtype() == DType::kFloat32 ? kFloat : Type::s32;
    const Desc desc({entry.values.size()}, type, Tag::a);
    bindings.push_back({entry.arg, builder.constant(entry.values, desc, desc)});
  }
}

std::vector<AttributeValues> QuantisedProduct::attributes(int channels) const {
  std::vector<AttributeValues> list = attribute_values(DNNL_ARG_SRC, source);
  if (source_zero_point >= 0)
    list.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, 0, {}, source_zero_point});
  list.push_back({DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, weight_scales.size() == 1 ? 0 : channels,
                  weight_scales});
  if (weight_zero_point != 0)
    list.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS, 0, number(weight_zero_point)});
  if (result)
    for (AttributeValues& entry : attribute_values(DNNL_ARG_DST, *result))
      list.push_back(std::move(entry));
  return list;
}

Status can_multiply(const CallNode& call) {
  if (!has_dot_products() && !has_exact_pairs(call))
    return unsupported("onednn: products of bytes, which saturate on this processor");
  // Seen with three images on two threads: results differ from run to run.
  if (!has_dot_products() && is_strided_pointwise(call))
    return unsupported("onednn: a pointwise convolution of bytes with strides");
  if (terms_of(call) > kMostTerms)
    return unsupported("onednn: sums of {} products of bytes", terms_of(call));
  TRY(source_quantisation(call));
  if (call.args[4]->kind() != ExprKind::kConstant)
    return unsupported("onednn: scales that are not constant");
  const int32_t zero = TRY(weight_zero_point(call));
  if (zero != 0 && call.op->name.starts_with("qnn.conv"))
    return unsupported("onednn: a convolution's weights with a zero point");
  return {};
}

Result<QuantisedProduct> read_quantised(const Composite& composite) {
  const CallNode& call = *composite.anchor;
  TRY(can_multiply(call));
  QuantisedProduct product;
  product.source = TRY(source_quantisation(call));
  product.source_zero_point = composite.inputs[3].param;
  product.weight_scales = as<ConstantNode>(call.args[4])->value;
  product.result = composite.rounded;
  product.weight_zero_point = TRY(weight_zero_point(call));
  if (const auto* weights = as<ConstantNode>(call.args[1]))
    product.weights =
        weights->value.dtype() == DType::kInt8 ? weights->value : with_sign(weights->value);
  return product;
}

}  // namespace collage::onednn
