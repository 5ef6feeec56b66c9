// random.uniform(key, run) and random.normal(key, run): tensors of random numbers, the same for the
// same key and run on every backend (counter_random.h). Element i of a uniform tensor is number i
// of the stream, that of a normal one is made of numbers 2·i and 2·i + 1 by Box and Muller. A
// float32 uniform number takes 24 bits of its number, a float64 one 53. Without `run` it is 0.
//
// random.run(): the number of the run that computes it (run_number.h). Like all calls without
// arguments it is no constant, though it has no inputs.
#include <cmath>
#include <numbers>

#include "ops/counter_random.h"
#include "ops/families.h"
#include "runtime/run_number.h"

namespace collage {

namespace {

Result<Type> infer_random(Types args, const Attrs& attrs) {
  for (size_t i = 0; i < args.size(); ++i) {
    const char* what = i == 0 ? "the key" : "the run";
    const TensorType number = TRY(tensor_arg(args, i));
    TRY(require_integer(number, what));
    if (num_elements(number.shape) != 1)
      return bad_model("{} has shape {}, not one element", what, shape_to_string(number.shape));
  }
  const DType dtype = attrs.dtype("dtype");
  if (!is_float(dtype)) return bad_model("random numbers of type {}", dtype_name(dtype));
  for (int64_t extent : attrs.ints("shape"))
    if (extent < 0) return bad_model("shape {}", shape_to_string(attrs.ints("shape")));
  return tensor_result(attrs.ints("shape"), dtype);
}

// `number` makes element i.
template <typename T, typename F>
void fill(Tensor& out, F number) {
  T* to = out.data<T>();
  const int64_t n = out.size();
#pragma omp parallel for schedule(static) if (n > 8192)
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(number(static_cast<uint64_t>(i)));
}

RandomStream stream_of(std::span<const Tensor> inputs) {
  const auto number = [&](size_t i) {
    return static_cast<uint64_t>(inputs[i].element_as_int64(0));
  };
  return inputs.size() > 1 ? RandomStream(number(0), number(1)) : RandomStream(number(0));
}

Status run_uniform(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const RandomStream stream = stream_of(inputs);
  const double low = attrs.real("low"), range = attrs.real("high") - low;
  dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
    fill<T>(outputs[0], [&](uint64_t i) {
      if constexpr (std::is_same_v<T, float>)
        return low + range * static_cast<double>(stream.uniform_float(i));
      else
        return low + range * stream.uniform(i);
    });
  });
  return {};
}

Status run_normal(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const RandomStream stream = stream_of(inputs);
  const double mean = attrs.real("mean"), scale = attrs.real("scale");
  dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
    fill<T>(outputs[0], [&](uint64_t i) {
      const double radius = std::sqrt(-2 * std::log(1 - stream.uniform(2 * i)));
      return mean + scale * radius * std::cos(2 * std::numbers::pi * stream.uniform(2 * i + 1));
    });
  });
  return {};
}

void random(std::string name, const char* first, const char* second, double fallback,
            ReferenceKernel kernel, double operations) {
  OpDef op = make_op(
      std::move(name), 1,
      {{"shape", Ints{}, true}, {first, 0.0}, {second, fallback}, {"dtype", DType::kFloat32}},
      FusionKind::kOpaque, infer_random, with_halves(std::move(kernel)),
      [operations](Types, const Attrs&, const Type& result) {
        return operations * static_cast<double>(num_elements(result.tensor().shape));
      });
  op.max_args = 2;
  register_op(std::move(op));
}

}  // namespace

void register_random_ops() {
  random("random.uniform", "low", "high", 1.0, run_uniform, 10);
  random("random.normal", "mean", "scale", 1.0, run_normal, 40);
  register_op(make_op(
      "random.run", 0, {}, FusionKind::kOpaque,
      [](Types, const Attrs&) { return tensor_result({}, DType::kInt64); },
      [](std::span<const Tensor>, const Attrs&, std::span<Tensor> outputs) -> Status {
        outputs[0].data<int64_t>()[0] = static_cast<int64_t>(RunNumber::current());
        return {};
      },
      no_work));
}

}  // namespace collage
