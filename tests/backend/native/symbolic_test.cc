// Code that serves all shapes of a function (`native -symbolic=only`): against the interpreter for
// many lengths, compiled once.
#include <functional>

#include "backend/native/code_cache.h"
#include "backend/native/native_backend.h"
#include "backend/native/symbolic_kernel.h"
#include "check.h"
#include "tensor_program/program_text.h"

namespace collage::native {
namespace {

constexpr std::array<int64_t, 32> kLengths{1,  2,  3,   5,   7,   8,   9,   11,  13,  16, 17,
                                           19, 23, 29,  31,  32,  33,  37,  47,  64,  65, 77,
                                           96, 97, 101, 127, 128, 129, 197, 211, 256, 331};

/// The function for each of the lengths is right, and one kernel is compiled for all of them.
void check_lengths(const std::function<Function(int64_t)>& function_of) {
  const int64_t before = compiled_kernels();
  std::vector<std::unique_ptr<Kernel>> kept;  // code goes with the last kernel that has it
  for (const int64_t length : kLengths) {
    SCOPED_TRACE(length);
    const Function function = function_of(length);
    const Target target{"native", {{"symbolic", "only"}}, {}};
    auto kernel = make_native_backend()->compile(function, Variant::plain(kSymbolic, function),
                                                 target, CompileOptions{2, ""});
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    kept.push_back(std::move(kernel).value());
    check_function(function, {.target_options = target.options});
  }
  EXPECT_EQ(compiled_kernels() - before, 1);
}

TEST(Symbolic, SoftmaxOfAnyRows) {
  check_lengths([](int64_t n) {
    const Expr x = var("x", {3, n, n});
    return function({x}, call("nn.softmax", {x}, {{"axis", int64_t{-1}}}));
  });
}

TEST(Symbolic, LayerNorm) {
  const Expr gamma = weights({96}), beta = weights({96});
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {n, 96});
    return function(
        {x}, call("nn.layer_norm", {x, gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
  });
}

TEST(Symbolic, ChainsOfElementwiseOperators) {
  const Expr bias = weights({48});
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {n, 48});
    return function({x}, call("nn.gelu", {call("add", {x, bias})}));
  });
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {n * 100});
    return function({x}, call("multiply", {call("tanh", {x}), x}));
  });
}

// The factor of a mean follows the length.
TEST(Symbolic, Means) {
  check_lengths([&](int64_t n) {
    const Expr x = var("x", {20, n});
    return function({x}, call("mean", {x}, {{"axis", Ints{1}}, {"keepdims", false}}));
  });
}

}  // namespace
}  // namespace collage::native
