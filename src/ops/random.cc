// random.uniform(key) and random.normal(key): tensors of random numbers, the same for the same key
// on every backend and in every run (counter_random.h). Element i of a uniform tensor is number i
// of the key's stream, that of a normal one is made of numbers 2·i and 2·i + 1 by Box and Muller.
// A float32 uniform number takes 24 bits of its number, a float64 one 53.
#include <cmath>
#include <numbers>

#include "ops/counter_random.h"
#include "ops/families.h"

namespace collage {

namespace {

Result<Type> infer_random(Types args, const Attrs& attrs) {
  TensorType key = TRY(tensor_arg(args, 0));
  TRY(require_integer(key, "the key"));
  if (num_elements(key.shape) != 1)
    return bad_model("the key has shape {}, not one element", shape_to_string(key.shape));
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

RandomStream stream_of(const Tensor& key) {
  return RandomStream(static_cast<uint64_t>(key.element_as_int64(0)));
}

Status run_uniform(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const RandomStream stream = stream_of(inputs[0]);
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
  const RandomStream stream = stream_of(inputs[0]);
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
  register_op(make_op(
      std::move(name), 1,
      {{"shape", Ints{}, true}, {first, 0.0}, {second, fallback}, {"dtype", DType::kFloat32}},
      FusionKind::kOpaque, infer_random, with_halves(std::move(kernel)),
      [operations](Types, const Attrs&, const Type& result) {
        return operations * static_cast<double>(num_elements(result.tensor().shape));
      }));
}

}  // namespace

void register_random_ops() {
  random("random.uniform", "low", "high", 1.0, run_uniform, 10);
  random("random.normal", "mean", "scale", 1.0, run_normal, 40);
}

}  // namespace collage
