#include "tensor_program/constant_values.h"

#include "runtime/dispatch.h"

namespace collage::tensor_program {
namespace {

Status store(Tensor& to, size_t i, const Term& value) {
  const double real = is_float(value.dtype()) ? value->real : static_cast<double>(value->integer);
  switch (to.dtype()) {
    case DType::kFloat32:
      to.data<float>()[i] = static_cast<float>(real);
      return {};
    case DType::kFloat64:
      to.data<double>()[i] = real;
      return {};
    case DType::kBool:
      to.data<bool>()[i] = value->integer != 0;
      return {};
    default:
      if (!is_integer(to.dtype())) return unsupported("values of {}", dtype_name(to.dtype()));
      dispatch_integer(to.dtype(), [&]<typename T>(Tag<T>) {
        to.data<T>()[i] = static_cast<T>(value->integer);
      });
      return {};
  }
}

}  // namespace

Result<Tensor> tensor_of(const std::string& name, const TensorType& type,
                         const std::vector<Term>& values) {
  if (static_cast<int64_t>(values.size()) != TRY(checked_num_elements(type.shape)))
    return bad_model("{} values for {}", values.size(), name);
  Tensor tensor = TRY(Tensor::allocate(type.dtype, type.shape));
  for (size_t i = 0; i < values.size(); ++i) TRY(store(tensor, i, values[i]));
  return tensor;
}

}  // namespace collage::tensor_program
