// What tolerances are derived from: how far noise of the size of a kernel's roundings moves
// outputs.
#include "verify/rounding_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "measure/task.h"
#include "networks.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "tensor_program/call.h"
#include "tensor_program/program_text.h"
#include "verify/noise.h"
#include "verify/reference_check.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

Expr parameter(Shape shape, DType dtype = DType::kFloat32) {
  register_all_ops();
  return make_var("x", TensorType{std::move(shape), dtype});
}
Expr rounded_call(const std::string& op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}
Expr number(float value) { return make_constant(Tensor::scalar(value)); }

double rms(const Tensor& tensor) {
  double squares = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) squares += std::pow(tensor.element_as_double(i), 2);
  return std::sqrt(squares / static_cast<double>(tensor.size()));
}

// What roundings move the first output's elements by, in root mean square, with a margin; as a part
// of that of the output.
double allowed(const Function& function, const Rounding& rounding = {}) {
  RoundingErrors errors = testing::on_trial_data(function);
  const auto by = errors.moved(0, rounding).value();
  double squares = 0;
  for (const double one : *by) squares += one * one;
  return std::sqrt(squares / static_cast<double>(by->size())) / rms(errors.expected()[0]);
}

TEST(Noise, IsAsLargeAsAskedAndTheSameEveryTime) {
  const TensorType type{{50, 1000}, DType::kFloat32};
  const Tensor tensor = random_tensor(type, 3);
  for (const Noise& noise : {Noise{1e-3, 0, 0, 1}, Noise{0, 1e-3, 0, 1}}) {
    const Tensor noisy = with_noise(tensor, noise).value(),
                 again = with_noise(tensor, noise).value();
    Tensor change = tensor.clone();
    double sum = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      ASSERT_EQ(noisy.data<float>()[i], again.data<float>()[i]);
      change.data<float>()[i] = noisy.data<float>()[i] - tensor.data<float>()[i];
      sum += static_cast<double>(change.data<float>()[i]);
    }
    EXPECT_NEAR(rms(change), noise.relative > 0 ? 1e-3 * rms(tensor) : 1e-3, 3e-5);
    EXPECT_NEAR(sum / static_cast<double>(tensor.size()), 0, 2e-5);
  }
  const Noise other{1e-3, 0, 0, 2};
  EXPECT_NE(with_noise(tensor, other).value().data<float>()[5],
            with_noise(tensor, Noise{1e-3, 0, 0, 1}).value().data<float>()[5]);
}

TEST(Noise, LeavesIntegersZerosAndInfinitiesAlone) {
  const Tensor whole = Tensor::from<int64_t>({3}, {1, 2, 3});
  EXPECT_EQ(with_noise(whole, {1, 1, 0, 1}).value().raw(), whole.raw());
  const Tensor tensor = Tensor::from<float>({4}, {0, INFINITY, -INFINITY, NAN});
  const Tensor noisy = with_noise(tensor, {1e-3, 1e-3, 0, 1}).value();
  EXPECT_EQ(noisy.data<float>()[0], 0);
  EXPECT_EQ(noisy.data<float>()[1], INFINITY);
  EXPECT_EQ(noisy.data<float>()[2], -INFINITY);
  EXPECT_TRUE(std::isnan(noisy.data<float>()[3]));
}

TEST(Neighbours, AreOneAwayAndInsideTheType) {
  for (const DType dtype : {DType::kInt8, DType::kUInt8}) {
    const TensorType type{{100000}, dtype};
    const Tensor tensor = synthetic_constant(type, 3).value();  // every value of the type
    const Tensor moved = with_moved_steps(tensor, 64, 1).value();
    int64_t changed = 0, sum = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const int64_t change = moved.element_as_int64(i) - tensor.element_as_int64(i);
      ASSERT_LE(std::abs(change), 1) << i;
      changed += change != 0;
      sum += change;
    }
    EXPECT_NEAR(static_cast<double>(changed), 100000.0 / 64, 200);
    EXPECT_LE(std::abs(sum), 200);
  }
  const Tensor whole = Tensor::from<int64_t>({3}, {1, 2, 3});
  EXPECT_EQ(with_moved_steps(whole, 2, 1).value().raw(), whole.raw());
}

Expr quantised(Expr data, float scale) {
  return rounded_call("qnn.quantize",
                      {std::move(data), number(scale), make_constant(Tensor::scalar<int32_t>(3))},
                      {{"out_dtype", std::string("int8")}});
}

TEST(Quanta, OneOffIsAllowedOfFewElementsAlone) {
  const Expr x = parameter({64, 256});
  RoundingErrors errors = testing::on_trial_data(make_function({x}, quantised(x, 0.01f)));
  const Tensor& expected = errors.expected()[0];
  const auto with_change = [&](int every, int by) {
    Tensor changed = expected.clone();
    for (int64_t i = 0; i < changed.size(); i += every) {
      int8_t& value = changed.data<int8_t>()[i];
      value = static_cast<int8_t>(value > 0 ? value - by : value + by);
    }
    return errors.compare(0, changed, {}).value().within;
  };
  EXPECT_TRUE(with_change(1000, 1));
  EXPECT_FALSE(with_change(1000, 2));
  EXPECT_FALSE(with_change(10, 1));
}

// The scale of one tensor is twice the other's, so half of the sums are in the middle of two
// integers, of which rounding chooses one.
TEST(Quanta, OfMiddlesAreEitherNeighbour) {
  const auto bytes = [](const char* name) {
    return make_var(name, TensorType{{64, 64}, DType::kUInt8});
  };
  const auto real = [](const Expr& x, float scale, int32_t zero) {
    return rounded_call("qnn.dequantize",
                        {x, number(scale), make_constant(Tensor::scalar<int32_t>(zero))});
  };
  register_all_ops();
  const Expr x = bytes("x"), y = bytes("y");
  const Expr sum = rounded_call("add", {real(x, 0.16f, 128), real(y, 0.08f, 100)});
  ReferenceCheck check(make_function({x, y}, quantised(sum, 0.16f)), {});
  const ReferenceInputs& asked = check.seeded().value()[0];
  Tensor exact = asked.expected[0].clone(), shifted = exact.clone();
  int64_t others = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    const double steps = static_cast<double>(asked.inputs[0].element_as_int64(i) - 128) +
                         static_cast<double>(asked.inputs[1].element_as_int64(i) - 100) / 2;
    int8_t& value = exact.data<int8_t>()[i];
    const auto right = static_cast<int8_t>(std::clamp(std::nearbyint(steps) + 3, -128., 127.));
    others += value != right;
    value = right;
    shifted.data<int8_t>()[i] = static_cast<int8_t>(right == 127 ? 126 : right + 1);
  }
  EXPECT_GT(others, exact.size() / 16);
  EXPECT_TRUE(check.compare(asked, 0, exact, model_tolerance()).value().within);
  EXPECT_FALSE(check.compare(asked, 0, shifted, model_tolerance()).value().within);
}

TEST(Quanta, OfOneTensorMoveWhatIsComputedFromIt) {
  const Expr x = parameter({64, 256});
  const Expr coarse = rounded_call("qnn.dequantize", {quantised(x, 0.1f), number(0.1f),
                                                      make_constant(Tensor::scalar<int32_t>(3))});
  // A quantum of the first is five of the second.
  RoundingErrors errors = testing::on_trial_data(make_function({x}, quantised(coarse, 0.02f)));
  const auto with_change = [](RoundingErrors& one, int every, double by) {
    Tensor changed = one.expected()[0].clone();
    for (int64_t i = 0; i < changed.size(); i += every) {
      if (changed.dtype() == DType::kFloat32) {
        changed.data<float>()[i] += static_cast<float>(by);
      } else {
        int8_t& value = changed.data<int8_t>()[i];
        value = static_cast<int8_t>(value > 0 ? value - by : value + by);
      }
    }
    return one.compare(0, changed, {}).value().within;
  };
  EXPECT_TRUE(with_change(errors, 100, 4));
  EXPECT_FALSE(with_change(errors, 100, 30));
  RoundingErrors real = testing::on_trial_data(make_function({x}, coarse));
  EXPECT_TRUE(with_change(real, 100, 0.0999));
  EXPECT_FALSE(with_change(real, 1, 0.1));
}

TEST(Rounding, TravelsWithItsVariant) {
  Variant variant{"planted", {}, {}};
  variant.rounding = {.sums = 5, .factors = 0x1p-17, .fixed_point = 0x1p-13, .tensors = 0x1p-8};
  EXPECT_EQ(variant_from_json(to_json(variant)).value().rounding, variant.rounding);
  EXPECT_EQ(to_json(Variant{"plain", {}, {}}).count("rounding"), 0U);
}

TEST(Rounding, SaysTheLeastLimitThatAllowsIt) {
  EXPECT_EQ(Rounding().limit(), RoundingLimit::kStrict);
  for (const Rounding& one : {rounding::kBFloat16Pairs, rounding::kWinograd2, rounding::kWinograd4})
    EXPECT_EQ(one.limit(), RoundingLimit::kDefault);
  for (const Rounding& one :
       {rounding::kBFloat16, rounding::kBFloat16Factors, Rounding{.fixed_point = 0x1p-13}})
    EXPECT_EQ(one.limit(), RoundingLimit::kAny);
}

TEST(Work, TravelsWithItsVariant) {
  Variant variant{"planted", {}, {}};
  variant.schedule = "4 rows";
  variant.work = {.multiplications = 0.25, .unit = "int16", .constants = 0.5, .in_place = true};
  const Variant read = variant_from_json(to_json(variant)).value();
  EXPECT_EQ(read.work, variant.work);
  EXPECT_EQ(read.schedule, variant.schedule);
}

TEST(RoundingErrors, FollowHowAFunctionCarriesErrors) {
  const Expr x = parameter({64, 64});
  const double one = allowed(make_function({x}, rounded_call("add", {x, x})));
  EXPECT_LT(one, 5e-7);
  // The same value, but what is left of 1000 + x has lost three digits.
  const Expr large = rounded_call("add", {x, number(1000)});
  const double cancelled =
      allowed(make_function({x}, rounded_call("subtract", {large, number(1000)})));
  EXPECT_GT(cancelled, 200 * one);
  // Moving data loses nothing.
  const double moved =
      allowed(make_function({x}, rounded_call("transpose", {x}, {{"axes", Ints{1, 0}}})));
  EXPECT_LT(moved, 1e-7);
}

TEST(RoundingErrors, GrowWithTheLengthOfSums) {
  const auto of_terms = [](int64_t terms) {
    const Expr x = parameter({64, terms});
    testing::Weights weights;
    return allowed(make_function({x}, rounded_call("nn.dense", {x, weights.of({64, terms})})));
  };
  const double few = of_terms(64), many = of_terms(4096);
  EXPECT_GT(many, 5 * few);
  EXPECT_LT(many, 12 * few);
  EXPECT_LT(many, 1e-5);
}

TEST(RoundingErrors, OfAProgramAreThoseOfItsOperations) {
  if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
  const auto of_program = [](const std::string& text) {
    const tensor_program::Program program = tensor_program::parse_program(text).value();
    const Expr x = parameter(program.buffers[0].type.shape);
    return allowed(make_function({x}, call_of_program(program, {x}, "", "").value()));
  };
  const Expr x = parameter({64, 64}), long_rows = parameter({64, 4096});
  const Expr large = rounded_call("add", {x, number(1000)});
  const double cancelled =
      allowed(make_function({x}, rounded_call("subtract", {large, number(1000)})));
  EXPECT_NEAR(of_program("program { param A: float32[64, 64]; "
                         "result B[i:64, j:64] = A[i, j] + 1000.0f - 1000.0f; }"),
              cancelled, 0.5 * cancelled);
  EXPECT_LT(of_program("program { param A: float32[64, 64]; result B[i:64, j:64] = A[j, i]; }"),
            1e-7);
  const double sums =
      allowed(make_function({long_rows}, rounded_call("sum", {long_rows}, {{"axis", Ints{1}}})));
  const double summed =
      of_program("program { param A: float32[64, 4096]; result B[i:64] = sum(k:4096) A[i, k]; }");
  EXPECT_LT(summed, 2 * sums);
  EXPECT_GT(summed, sums / 2);
  // Approximations err by more than one rounding.
  const double exponential = allowed(make_function({x}, rounded_call("exp", {x})));
  EXPECT_NEAR(of_program("program { param A: float32[64, 64]; "
                         "result B[i:64, j:64] = exp(A[i, j]); }"),
              exponential, 0.3 * exponential);
}

TEST(RoundingErrors, GrowWithWhatAVariantRounds) {
  const Expr x = parameter({32, 256});
  testing::Weights weights;
  const Function dense = make_function({x}, rounded_call("nn.dense", {x, weights.of({32, 256})}));
  const double plain = allowed(dense), pairs = allowed(dense, rounding::kBFloat16Pairs);
  const double halves = allowed(dense, rounding::kBFloat16Factors);
  EXPECT_LT(plain, pairs);
  EXPECT_NEAR(halves / pairs, 512, 100);
  const double two_factors = 2 * 0.41 * std::sqrt(2) * 0x1p-8;
  EXPECT_GT(halves, 0.9 * two_factors);
  EXPECT_LT(halves, 1.5 * two_factors);
  EXPECT_GT(allowed(dense, rounding::kBFloat16), halves);
  // Nothing is multiplied: only bfloat16 tensors round.
  const Function relu = make_function({x}, rounded_call("nn.relu", {x}));
  EXPECT_LT(allowed(relu, rounding::kBFloat16Factors), 1e-6);
  EXPECT_GT(allowed(relu, rounding::kBFloat16), 1e-3);
}

// Of all operators, where it is not an algorithm's in tiles.
TEST(RoundingErrors, AreAsManyTimesAsLargeAsStated) {
  const Expr x = parameter({32, 256});
  const Function power = make_function({x}, rounded_call("exp", {x}));
  EXPECT_NEAR(allowed(power, {.sums = 10}) / allowed(power), 10, 1);
  EXPECT_NEAR(allowed(power, rounding::kWinograd4) / allowed(power), 1, 0.1);
}

TEST(RoundingErrors, AreNotThoseOfJumps) {
  // One step in a hundred elements would be more than all roundings.
  const Expr x = parameter({100, 100});
  const Expr steps = rounded_call("floor", {rounded_call("multiply", {x, number(1000)})});
  EXPECT_LT(allowed(make_function({x}, rounded_call("add", {steps, x}))), 1e-6);
  const Expr chosen = rounded_call(
      "where", {rounded_call("less", {rounded_call("add", {x, x}), number(0)}), x, number(100)});
  EXPECT_LT(allowed(make_function({x}, chosen)), 1e-6);
  const Expr domain =
      rounded_call("sqrt", {rounded_call("subtract", {rounded_call("add", {x, number(3)}),
                                                      rounded_call("add", {x, number(3)})})});
  RoundingErrors errors = testing::on_trial_data(make_function({x}, domain));
  const auto by = errors.moved(0, {}).value();
  EXPECT_TRUE(std::all_of(by->begin(), by->end(), [](double one) { return std::isfinite(one); }));
}

TEST(RoundingErrors, OfIntegersAreNone) {
  const Expr x = parameter({10, 10});
  RoundingErrors errors = testing::on_trial_data(
      make_function({x}, rounded_call("argmax", {x}, {{"axis", int64_t{1}}})));
  Tensor other = errors.expected()[0].clone();
  EXPECT_TRUE(errors.compare(0, other, {}).value().within);
  ++other.data<int64_t>()[3];
  EXPECT_FALSE(errors.compare(0, other, {}).value().within);
}

// One element is compared with the very number that it is: which is larger is up to rounding.
TEST(RoundingErrors, DecideWhatLiesOnAJump) {
  const Expr x = parameter({100});
  const Expr power = rounded_call("exp", {x});
  const float middle =
      testing::on_trial_data(make_function({x}, power)).expected()[0].data<float>()[42];
  const auto with_change = [&](const Expr& result, int64_t i) {
    RoundingErrors errors = testing::on_trial_data(make_function({x}, result));
    Tensor changed = errors.expected()[0].clone();
    if (changed.dtype() == DType::kBool) {
      bool& decided = changed.data<bool>()[i];
      decided = !decided;
    } else {
      changed.data<float>()[i] = 5 - changed.data<float>()[i];
    }
    return errors.compare(0, changed, {}).value().within;
  };
  const Expr larger = rounded_call("greater", {power, number(middle)});
  EXPECT_TRUE(with_change(larger, 42));
  EXPECT_FALSE(with_change(larger, 41));
  const Expr chosen = rounded_call("where", {larger, number(1), number(4)});
  EXPECT_TRUE(with_change(chosen, 42));
  EXPECT_FALSE(with_change(chosen, 41));
}

TEST(RoundingErrors, OfOneElementAreNotThoseOfOthers) {
  // Rows of ones beside rows of the largest numbers: what each may err by follows its own.
  const Expr x = parameter({64, 64});
  Tensor sizes = Tensor::empty(DType::kFloat32, {64, 1});
  for (int64_t i = 0; i < 64; ++i) sizes.data<float>()[i] = i % 2 == 0 ? 1.0f : 3e36f;
  const Expr wide = rounded_call("multiply", {rounded_call("add", {x, x}), make_constant(sizes)});
  RoundingErrors errors =
      RoundingErrors::of(make_function({x}, wide), {random_tensor(x->tensor_type(), 3)}).value();
  const Tensor& expected = errors.expected()[0];
  const auto with_error = [&](double relative, double absolute) {
    Tensor changed = expected.clone();
    for (int64_t i = 0; i < changed.size(); ++i)
      if (i / 64 % 2 == 0)
        changed.data<float>()[i] =
            static_cast<float>(expected.element_as_double(i) * (1 + relative) + absolute);
    return errors.compare(0, changed, {}).value().within;
  };
  EXPECT_TRUE(with_error(1e-7, 0));
  EXPECT_FALSE(with_error(1e-5, 0));
  EXPECT_FALSE(with_error(0, 1e-4));
}

TEST(RoundingErrors, OfTilesAreThoseOfWhatATileReads) {
  // One pixel far larger than all others: Winograd's outputs whose tile reads it err by it.
  const Expr x = parameter({1, 4, 24, 24});
  testing::Weights weights;
  const Function conv = make_function({x}, rounded_call("nn.conv2d", {x, weights.of({8, 4, 3, 3})},
                                                        {{"padding", Ints{1, 1, 1, 1}}}));
  Tensor image = random_tensor(x->tensor_type(), 3).clone();
  image.data<float>()[10 * 24 + 10] = 1e5f;  // in the tile of rows and columns 8 to 11
  RoundingErrors errors = RoundingErrors::of(conv, {image}).value();
  const auto with_error_at = [&](int64_t row, int64_t column, const Rounding& rounding, float by) {
    Tensor changed = errors.expected()[0].clone();
    changed.data<float>()[row * 24 + column] += by;
    return errors.compare(0, changed, rounding).value().within;
  };
  EXPECT_TRUE(with_error_at(8, 8, rounding::kWinograd4, 0.1f)) << "in its tile";
  EXPECT_FALSE(with_error_at(8, 8, {}, 0.1f)) << "a direct kernel does not read it for that";
  EXPECT_FALSE(with_error_at(8, 13, rounding::kWinograd4, 0.01f)) << "another tile";
  EXPECT_FALSE(with_error_at(20, 20, rounding::kWinograd4, 0.01f));
  EXPECT_FALSE(with_error_at(8, 8, rounding::kWinograd4, INFINITY));
  image.data<float>()[10 * 24 + 10] = INFINITY;
  errors = RoundingErrors::of(conv, {image}).value();
  EXPECT_TRUE(with_error_at(8, 8, rounding::kWinograd4, NAN)) << "it may spread";
  EXPECT_FALSE(with_error_at(8, 13, rounding::kWinograd4, NAN));
  EXPECT_FALSE(with_error_at(8, 8, {}, NAN));
}

TEST(RoundingErrors, OfHalfWidthNumbersAreOfTheirSize) {
  for (const auto& [dtype, unit] :
       {std::pair{DType::kFloat16, 0x1p-11}, std::pair{DType::kBFloat16, 0x1p-8}}) {
    const Expr x = parameter({64, 64}, dtype), y = make_var("y", TensorType{{64, 64}, dtype});
    const double mean = allowed(make_function({x, y}, rounded_call("nn.dense", {x, y})));
    EXPECT_GT(mean, 0.5 * unit) << dtype_name(dtype);
    EXPECT_LT(mean, 5 * unit) << dtype_name(dtype);
  }
}

TEST(RoundingErrors, OfOneNumberAreNotLeftToOneDraw) {
  for (int64_t terms = 1000; terms < 1040; ++terms) {
    const Expr x = parameter({terms});
    const Function mean =
        make_function({x}, rounded_call("mean", {rounded_call("multiply", {x, x})}));
    EXPECT_GT(allowed(mean), 5e-7) << terms;
    EXPECT_LT(allowed(mean), 3e-5) << terms;
  }
}

TEST(RoundingErrors, OfBFloat16LeaveSomethingOfTheResult) {
  const Expr x = parameter({8, 8});
  RoundingErrors relu = testing::on_trial_data(make_function({x}, rounded_call("nn.relu", {x})));
  const auto times = [](RoundingErrors& errors, float factor) {
    Tensor changed = errors.expected()[0].clone();
    for (int64_t i = 0; i < changed.size(); ++i) changed.data<float>()[i] *= factor;
    return errors.compare(0, changed, rounding::kBFloat16).value().within;
  };
  EXPECT_TRUE(times(relu, 1 + 0x1p-8f));
  EXPECT_FALSE(times(relu, 1 + 0x1p-4f));
  Expr deep = x;
  for (int i = 0; i < 1000; ++i) deep = rounded_call("add", {deep, number(1)});
  for (int i = 0; i < 1000; ++i) deep = rounded_call("subtract", {deep, number(1)});
  RoundingErrors lost = testing::on_trial_data(make_function({x}, deep));
  EXPECT_FALSE(times(lost, 2));
}

}  // namespace
}  // namespace collage
