#include "check.h"

#include <fmt/format.h>

#include <random>

#include "backend/check.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/native_backend.h"
#include "backend/offer.h"
#include "ops/half.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "tensor_program/call.h"

namespace collage::native {
namespace {

Tensor random_tensor(const TensorType& type, std::mt19937& random, bool integers) {
  Tensor tensor = Tensor::empty(type.dtype, type.shape);
  std::uniform_real_distribution<float> real(-2.0f, 2.0f);
  std::uniform_int_distribution<int> whole(-3, 3);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (type.dtype) {
      case DType::kFloat32:
        tensor.data<float>()[i] = integers ? static_cast<float>(whole(random)) : real(random);
        break;
      case DType::kFloat16:
      case DType::kBFloat16:
        tensor.data<uint16_t>()[i] =
            float_to_half(integers ? static_cast<float>(whole(random)) : real(random), type.dtype);
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
      case DType::kInt8:
        tensor.data<int8_t>()[i] = static_cast<int8_t>(random());
        break;
      case DType::kUInt8:
        tensor.data<uint8_t>()[i] = static_cast<uint8_t>(random());
        break;
      default:
        ADD_FAILURE() << "no random " << dtype_name(type.dtype);
    }
  }
  return tensor;
}

void register_operators() {
  register_all_ops();
  if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
}

}  // namespace

Expr var(const std::string& name, Shape shape, DType dtype) {
  register_operators();
  return make_var(name, TensorType{std::move(shape), dtype});
}

Expr weights(Shape shape, bool integers) {
  static std::mt19937 random(7);
  return make_constant(random_tensor({std::move(shape), DType::kFloat32}, random, integers));
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs) {
  register_operators();
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

Expr program_call(std::vector<Expr> args, const std::string& text) {
  return call(tensor_program::kCallOp, std::move(args), {{"program", text}});
}

Function function(std::vector<Expr> params, Expr body) {
  return make_function(std::move(params), std::move(body));
}

namespace {

std::vector<Tensor> random_inputs(const Function& function, const CheckOptions& options) {
  std::mt19937 random(11);
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    inputs.push_back(random_tensor(param->tensor_type(), random, options.integers));
  return inputs;
}

}  // namespace

void check_function(const Function& function, const CheckOptions& options) {
  check_with_inputs(function, random_inputs(function, options), options);
}

void check_variant(const Function& function, const Variant& variant, const CheckOptions& options) {
  static const std::unique_ptr<Backend> backend = make_native_backend();
  const std::vector<Tensor> inputs = random_inputs(function, options);
  const auto expected = interpret(function, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  testing::check_variant(*backend, Target{"native", options.target_options, {}},
                         CompileOptions{2, ""}, function, variant, inputs, expected.value(),
                         {.mean = 0, .largest = options.tolerance, .element = 0});
}

Variant scheduled(const std::string& schedule, const Function& function, std::string_view row) {
  Variant variant = Variant::plain(schedule, function);
  variant.schedule = schedule_of(row, schedule);
  return variant;
}

std::vector<Variant> variants_of(const Function& function, std::string_view row) {
  const Problem problem = problem_of(function, 2).value();
  for (const KernelKind& kind : kernel_table())
    if (kind.row.name == row) return kind.variants(problem).value();
  ADD_FAILURE() << "no row " << row;
  return {};
}

void check_with_inputs(const Function& function, const std::vector<Tensor>& inputs,
                       const CheckOptions& options) {
  if (options.every_width) {
    const int other = vector_width() == 16 ? 8 : 16;
    SCOPED_TRACE(fmt::format("schedules for vectors of {}", other));
    const AssumedVectorWidth assumed(other);
    CheckOptions once = options;
    once.every_width = false;
    check_with_inputs(function, inputs, once);
  }
  static const std::unique_ptr<Backend> backend = make_native_backend();
  const Target target{"native", options.target_options, {}};
  const CompileOptions compile{2, "",
                               options.lowered ? RoundingLimit::kAny : RoundingLimit::kDefault};
  auto expected = interpret(function, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();

  auto variants = variants_to_cost(*backend, function, target, compile);
  ASSERT_TRUE(variants.ok()) << variants.status().message();
  EXPECT_GE(static_cast<int>(variants.value().size()), options.least_variants);
  for (const Variant& variant : variants.value()) {
    EXPECT_EQ(variant.lowered(), options.lowered) << variant.to_string();
    const double largest = variant.rounding.limit() == RoundingLimit::kDefault
                               ? options.relaxed_tolerance
                           : options.integers ? 0.0
                                              : options.tolerance;
    testing::check_variant(*backend, target, compile, function, variant, inputs, expected.value(),
                           {.mean = 0, .largest = largest, .element = 0});
  }
}

}  // namespace collage::native
