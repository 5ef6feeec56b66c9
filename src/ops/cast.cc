// cast, copy and reinterpret. Casting follows ONNX: floats to integers truncate towards zero (what
// is out of range has one answer too, runtime/casts.h), integers wrap, anything to bool is "is not
// zero". reinterpret takes the bits as another type of as many; those of half precision, which
// models are widened from, it refuses.
#include <cstring>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "runtime/casts.h"

namespace collage {

namespace {

template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return integer_from<To>(static_cast<double>(x));
  else
    return static_cast<To>(x);
}

Status run_cast(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const Tensor& in = inputs[0];
  Tensor& out = outputs[0];
  dispatch_any(in.dtype(), [&]<typename From>(Tag<From>) {
    if (out.dtype() == DType::kBool) {
      map_elements<From, uint8_t>(in, out,
                                  [](From x) { return static_cast<uint8_t>(x != From{0}); });
    } else {
      dispatch_number(out.dtype(), [&]<typename To>(Tag<To>) {
        map_elements<From, To>(in, out, [](From x) { return convert<To, From>(x); });
      });
    }
  });
  return {};
}

Result<Type> infer_reinterpret(Types args, const Attrs& attrs) {
  TensorType data = TRY(tensor_arg(args, 0));
  const DType dtype = attrs.dtype("dtype");
  if (dtype_size(dtype) != dtype_size(data.dtype))
    return bad_model("{} and {} differ in size", dtype_name(data.dtype), dtype_name(dtype));
  for (DType type : {data.dtype, dtype})
    if (is_half(type)) return bad_model("the bits of {}", dtype_name(type));
  return tensor_result(std::move(data.shape), dtype);
}

void copy_bytes(const Tensor& from, Tensor& to) {
  if (from.bytes() > 0) std::memcpy(to.raw(), from.raw(), from.bytes());
}

// A bool holds 0 or 1.
Status run_reinterpret(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  if (outputs[0].dtype() == DType::kBool)
    map_elements<uint8_t, uint8_t>(inputs[0], outputs[0],
                                   [](uint8_t x) { return static_cast<uint8_t>(x != 0); });
  else
    copy_bytes(inputs[0], outputs[0]);
  return {};
}

}  // namespace

void register_cast_ops() {
  OpDef cast;
  cast.name = "cast";
  cast.attrs = {{"dtype", DType::kFloat32, true}};
  cast.kind = FusionKind::kElementwise;
  cast.infer_type = [](Types args, const Attrs& attrs) -> Result<Type> {
    return tensor_result(TRY(tensor_arg(args, 0)).shape, attrs.dtype("dtype"));
  };
  cast.reference = with_halves(run_cast);
  register_op(std::move(cast));

  OpDef copy;
  copy.name = "copy";
  copy.kind = FusionKind::kElementwise;
  copy.infer_type = [](Types args, const Attrs&) -> Result<Type> {
    return Type(TRY(tensor_arg(args, 0)));
  };
  copy.reference = [](std::span<const Tensor> inputs, const Attrs&,
                      std::span<Tensor> outputs) -> Status {
    copy_bytes(inputs[0], outputs[0]);
    return {};
  };
  register_op(std::move(copy));

  register_op(make_op("reinterpret", 1, {{"dtype", DType::kInt32, true}}, FusionKind::kElementwise,
                      infer_reinterpret, run_reinterpret));
}

}  // namespace collage
