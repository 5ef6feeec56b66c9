#include "check.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backend/native/native_backend.h"
#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage::native {
namespace {

constexpr float kGuard = 12345.0f;

Tensor random_tensor(const TensorType& type, std::mt19937& random, bool integers) {
  Tensor tensor = Tensor::empty(type.dtype, type.shape);
  std::uniform_real_distribution<float> real(-2.0f, 2.0f);
  std::uniform_int_distribution<int> whole(-3, 3);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (type.dtype) {
      case DType::kFloat32:
        tensor.data<float>()[i] = integers ? static_cast<float>(whole(random)) : real(random);
        break;
      case DType::kInt64:
        tensor.data<int64_t>()[i] = whole(random);
        break;
      case DType::kInt32:
        tensor.data<int32_t>()[i] = whole(random);
        break;
      case DType::kBool:
        tensor.data<bool>()[i] = whole(random) > 0;
        break;
      default:
        ADD_FAILURE() << "no random " << dtype_name(type.dtype);
    }
  }
  return tensor;
}

/// Calls visit(row-major position, index) for every element.
template <typename F>
void for_each_index(const Shape& shape, F visit) {
  Shape index(shape.size(), 0);
  const int64_t count = num_elements(shape);
  for (int64_t i = 0; i < count; ++i) {
    visit(i, index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

/// Bytes in that layout with a guard behind them.
struct Buffer {
  Tensor bytes;
  void* data;
  size_t size;
};

Buffer make_buffer(size_t size) {
  Buffer buffer{Tensor::zeros(DType::kUInt8, {static_cast<int64_t>(size + 256)}), nullptr, size};
  buffer.data = buffer.bytes.raw();
  for (size_t i = 0; i < 16; ++i)
    std::memcpy(static_cast<char*>(buffer.data) + size + 4 * i, &kGuard, 4);
  return buffer;
}

bool guard_holds(const Buffer& buffer) {
  for (size_t i = 0; i < 16; ++i) {
    if (std::memcmp(static_cast<char*>(buffer.data) + buffer.size + 4 * i, &kGuard, 4) != 0)
      return false;
  }
  return true;
}

Buffer packed(const Tensor& tensor, const Encoding& encoding) {
  Buffer buffer = make_buffer(encoding.layout.physical_bytes(tensor.shape(), tensor.dtype()));
  const size_t unit = dtype_size(tensor.dtype());
  for_each_index(tensor.shape(), [&](int64_t i, const Shape& index) {
    std::memcpy(static_cast<char*>(buffer.data) +
                    static_cast<size_t>(encoding.layout.offset(tensor.shape(), index)) * unit,
                static_cast<const char*>(tensor.raw()) + static_cast<size_t>(i) * unit, unit);
  });
  return buffer;
}

}  // namespace

Expr var(const std::string& name, Shape shape, DType dtype) {
  register_all_ops();
  return make_var(name, TensorType{std::move(shape), dtype});
}

Expr weights(Shape shape, bool integers) {
  static std::mt19937 random(7);
  return make_constant(random_tensor({std::move(shape), DType::kFloat32}, random, integers));
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs) {
  register_all_ops();
  Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
  if (!result.ok()) {
    ADD_FAILURE() << op << ": " << result.status().message();
    abort();
  }
  return std::move(result).value();
}

bool check_supported(const Function& function) {
  auto variants =
      make_native_backend()->variants(function, Target{"native", {}, {}}, CompileOptions{2, ""});
  if (!variants.ok()) {
    EXPECT_FALSE(variants.status().message().empty());
  }
  return variants.ok();
}

Function function(std::vector<Expr> params, Expr body) {
  return make_function(std::move(params), std::move(body));
}

void check_function(const Function& function, const CheckOptions& options) {
  std::mt19937 random(11);
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    inputs.push_back(random_tensor(param->tensor_type(), random, options.integers));
  check_with_inputs(function, inputs, options);
}

void check_with_inputs(const Function& function, const std::vector<Tensor>& inputs,
                       const CheckOptions& options) {
  static const std::unique_ptr<Backend> backend = make_native_backend();
  const Target target{"native", options.target_options, {}};
  const CompileOptions compile{2, ""};
  auto expected = interpret(function, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();

  auto variants = options.lowered ? backend->lowered_variants(function, target, compile)
                                  : backend->variants(function, target, compile);
  ASSERT_TRUE(variants.ok()) << variants.status().message();
  EXPECT_GE(static_cast<int>(variants.value().size()), options.least_variants);
  for (const Variant& variant : variants.value()) {
    SCOPED_TRACE(variant.to_string());
    EXPECT_EQ(variant.lowered, options.lowered);
    auto kernel = backend->compile(function, variant, target, compile);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    std::vector<Buffer> in, out;
    std::vector<void*> in_data, out_data;
    for (size_t i = 0; i < inputs.size(); ++i) in.push_back(packed(inputs[i], variant.inputs[i]));
    for (size_t i = 0; i < expected.value().size(); ++i) {
      const Tensor& tensor = expected.value()[i];
      out.push_back(
          make_buffer(variant.outputs[i].layout.physical_bytes(tensor.shape(), tensor.dtype())));
      std::memset(out.back().data, 0x7f, out.back().size);
    }
    for (Buffer& b : in) in_data.push_back(b.data);
    for (Buffer& b : out) out_data.push_back(b.data);
    for (int round = 0; round < 2; ++round) {
      const Status status = kernel.value()->run({in_data.data(), out_data.data(), nullptr});
      ASSERT_TRUE(status.ok()) << status.message();
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const Tensor& tensor = expected.value()[i];
      EXPECT_TRUE(guard_holds(out[i]));
      double largest = 1e-2, error = 0;
      const Tensor got = Tensor::borrow(
          tensor.dtype(), {static_cast<int64_t>(out[i].size / dtype_size(tensor.dtype()))},
          out[i].data);
      std::string worst;
      for_each_index(tensor.shape(), [&](int64_t position, const Shape& index) {
        const double want = tensor.element_as_double(position);
        const double have =
            got.element_as_double(variant.outputs[i].layout.offset(tensor.shape(), index));
        largest = std::max(largest, std::abs(want));
        const double distance = want == have ? 0 : std::abs(want - have);
        if (!(distance <= error)) {
          error = distance;
          worst = fmt::format("{} at {}, not {}", have, shape_to_string(index), want);
        }
      });
      const double tolerance = variant.relaxed    ? options.relaxed_tolerance
                               : options.integers ? 0.0
                                                  : options.tolerance;
      EXPECT_LE(error, tolerance * largest) << worst;
      // Elements that only fill up a block are zero.
      if (!variant.outputs[i].layout.is_plain() && tensor.shape()[1] % 16 != 0) {
        std::vector<bool> real(static_cast<size_t>(got.size()), false);
        for_each_index(tensor.shape(), [&](int64_t, const Shape& index) {
          real[static_cast<size_t>(variant.outputs[i].layout.offset(tensor.shape(), index))] = true;
        });
        for (int64_t p = 0; p < got.size(); ++p) {
          if (!real[static_cast<size_t>(p)]) {
            ASSERT_EQ(got.element_as_double(p), 0.0) << "padding " << p;
          }
        }
      }
    }
  }
}

}  // namespace collage::native
