// nn.softmax and nn.log_softmax along one axis, in double, with the maximum subtracted.
#include <cmath>
#include <limits>

#include "ops/families.h"

namespace collage {

namespace {

template <typename T>
void run(const Tensor& in, Tensor& out, int64_t axis, bool logarithm) {
  const int64_t extent = in.shape()[static_cast<size_t>(axis)];
  const int64_t stride = extent_product(in.shape(), axis + 1, in.rank());
  if (in.size() == 0) return;
  const int64_t rows = in.size() / extent;
#pragma omp parallel for schedule(static) if (in.size() > 4096)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t base = row / stride * stride * extent + row % stride;
    const T* x = in.data<T>() + base;
    T* y = out.data<T>() + base;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < extent; ++i)
      largest = std::max(largest, static_cast<double>(x[i * stride]));
    for (int64_t i = 0; i < extent; ++i)
      sum += std::exp(static_cast<double>(x[i * stride]) - largest);
    for (int64_t i = 0; i < extent; ++i) {
      const double shifted = static_cast<double>(x[i * stride]) - largest;
      y[i * stride] = static_cast<T>(logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }
}

OpDef softmax_op(std::string name, bool logarithm) {
  OpDef op;
  op.name = std::move(name);
  op.attrs = {{"axis", int64_t{-1}}};
  op.kind = FusionKind::kAnchor;
  op.infer_type = [](Types args, const Attrs& attrs) -> Result<Type> {
    TensorType data = TRY(tensor_arg(args, 0));
    TRY(require_float(data, "data"));
    TRY(checked_axis(attrs.integer("axis"), static_cast<int64_t>(data.shape.size())));
    return Type(data);
  };
  op.reference = with_halves([logarithm](std::span<const Tensor> inputs, const Attrs& attrs,
                                         std::span<Tensor> outputs) -> Status {
    dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
      run<T>(inputs[0], outputs[0], normal_axis(attrs.integer("axis"), inputs[0].rank()),
             logarithm);
    });
    return {};
  });
  op.flops = work_per_element(0, 4);
  return op;
}

}  // namespace

void register_softmax_ops() {
  register_op(softmax_op("nn.softmax", false));
  register_op(softmax_op("nn.log_softmax", true));
}

}  // namespace collage
