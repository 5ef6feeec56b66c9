// where (three tensors broadcast together) and nn.prelu (a slope per channel).
#include "ops/elementwise.h"
#include "ops/families.h"

namespace collage {

namespace {

Result<Type> infer_where(Types args, const Attrs&) {
  TensorType condition = TRY(tensor_arg(args, 0));
  TensorType x = TRY(tensor_arg(args, 1)), y = TRY(tensor_arg(args, 2));
  if (condition.dtype != DType::kBool)
    return bad_model("the condition must be bool, not {}", dtype_name(condition.dtype));
  TRY(require_same_dtype(x, y));
  Shape shape = TRY(broadcast_shapes(x.shape, y.shape));
  return tensor_result(TRY(broadcast_shapes(condition.shape, shape)), x.dtype);
}

Status run_where(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Tensor* operands[] = {&inputs[0], &inputs[1], &inputs[2]};
  dispatch_size(dtype_size(outputs[0].dtype()), [&]<typename T>(Tag<T>) {
    map_rows(operands, outputs[0], [](const void* const* from, void* to, int64_t count) {
      const auto* condition = static_cast<const uint8_t*>(from[0]);
      const T* x = static_cast<const T*>(from[1]);
      const T* y = static_cast<const T*>(from[2]);
      for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = condition[i] != 0 ? x[i] : y[i];
    });
  });
  return {};
}

Result<Type> infer_prelu(Types args, const Attrs& attrs) {
  return infer_along_axis(args, attrs, require_float, "alpha");
}

Status run_prelu(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor alpha = along_axis(inputs[0], inputs[1], attrs);
  dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
    map_elements2<T, T>(inputs[0], alpha, outputs[0],
                        [](T x, T slope) { return x < T{0} ? x * slope : x; });
  });
  return {};
}

}  // namespace

void register_select_ops() {
  register_op(make_op("where", 3, {}, FusionKind::kBroadcast, infer_where, run_where));
  register_op(make_op("nn.prelu", 2, {{"axis", int64_t{1}}}, FusionKind::kBroadcast, infer_prelu,
                      with_halves(run_prelu)));
}

}  // namespace collage
