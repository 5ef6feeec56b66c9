// The blas backend: every case of the operators it claims, folded scales and sums, batches, and
// what it refuses; each variant against the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "backend/blas/blas_backend.h"
#include "backend/check.h"
#include "base/library_beside.h"
#include "ir/op.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "runtime/thread_team.h"
#include "saved_layouts.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const Target kTarget{"blas", {}, {}};

const Backend& backend() {
  static const Backend* instance = [] {
    register_all_ops();
    return make_blas_backend().release();
  }();
  return *instance;
}

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.value();
}

Expr input(const std::string& name, Shape shape) {
  backend();
  return make_var(name, TensorType{std::move(shape), DType::kFloat32});
}

Tensor values(Shape shape, int seed) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = std::sin(static_cast<float>(i * 7 + seed));
  return tensor;
}

Expr weights(Shape shape) { return make_constant(values(std::move(shape), 3)); }

/// Runs every variant; their names.
std::vector<std::string> check(const Function& function, const std::vector<Tensor>& inputs) {
  std::vector<std::string> names;
  auto variants = backend().variants(function, kTarget, {2, ""});
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  if (!variants.ok()) return names;
  for (const Variant& variant : *variants) names.push_back(variant.name);
  testing::check_variants(backend(), kTarget, function, inputs,
                          {.mean = 0, .largest = 2e-5, .element = 0});
  return names;
}

std::vector<std::string> check(std::vector<Expr> params, const Expr& body) {
  std::vector<Tensor> inputs;
  for (const Expr& param : params)
    inputs.push_back(values(param->tensor_type().shape, static_cast<int>(inputs.size())));
  return check(make_function(std::move(params), body), inputs);
}

std::string refusal(std::vector<Expr> params, const Expr& body) {
  auto variants = backend().variants(make_function(std::move(params), body), kTarget, {2, ""});
  EXPECT_FALSE(variants.ok());
  return variants.ok() ? "" : variants.status().message();
}

TEST(Blas, IsAvailableButNotInUseUnasked) {
  EXPECT_TRUE(backend().available().ok()) << backend().available().to_string();
  EXPECT_FALSE(backend().traits().by_default);
  EXPECT_THAT(backend().traits().version,
              ::testing::MatchesRegex("openblas-[0-9.]+\\+[0-9a-f]{12}"));
}

class BlasOperators : public ::testing::TestWithParam<std::string> {};

TEST_P(BlasOperators, EveryCase) {
  testing::check_operator(
      backend(), kTarget, GetParam(), {},
      [](const Function& function, const std::vector<Tensor>& inputs) { check(function, inputs); });
}

INSTANTIATE_TEST_SUITE_P(Blas, BlasOperators,
                         ::testing::Values("nn.dense", "nn.matmul", "nn.batch_matmul"),
                         testing::test_name_of_operator);

TEST(Blas, TransposesAndBatches) {
  for (bool transpose_a : {false, true})
    for (bool transpose_b : {false, true}) {
      const Attrs attrs{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
      const Expr a = input("a", transpose_a ? Shape{3, 24, 17} : Shape{3, 17, 24});
      const Expr b = input("b", transpose_b ? Shape{3, 35, 24} : Shape{3, 24, 35});
      EXPECT_THAT(check({a, b}, call("nn.matmul", {a, b}, attrs)), Contains("sgemm side by side"));
      const Expr w = weights(transpose_b ? Shape{35, 24} : Shape{24, 35});
      EXPECT_THAT(check({a}, call("nn.matmul", {a, w}, attrs)), Contains(HasSubstr("repacked")));
    }
  const Expr a = input("a", {2, 1, 17, 24}), b = input("b", {3, 24, 32});
  check({a, b}, call("nn.matmul", {a, b}));
  const Expr row = input("row", {1, 300});
  EXPECT_THAT(check({row}, call("nn.dense", {row, weights({65, 300})})), Contains("sgemv"));
  const Expr vector = input("vector", {40});
  check({vector}, call("nn.dense", {vector, weights({7, 40})}));
}

TEST(Blas, FoldsAScaleAndASum) {
  const Expr x = input("x", {2, 9, 48}), r = input("r", {2, 9, 32}), m = input("m", {9, 1});
  const Expr y = call("nn.dense", {x, weights({32, 48})});
  check({x}, call("nn.bias_add", {y, weights({32})}, {{"axis", int64_t{-1}}}));
  check({x, r}, call("add", {r, y}));
  check({x, m}, call("add", {call("multiply", {y, make_scalar(0.125f)}), m}));
  check({x}, call("divide", {y, make_scalar(8.0f)}));
  const Expr q = input("q", {2, 3, 20, 8}), k = input("k", {2, 3, 30, 8});
  const Expr mask = input("mask", {2, 1, 1, 30});
  const Expr scores = call("nn.matmul", {q, k}, {{"transpose_b", true}});
  check({q, k, mask}, call("add", {call("multiply", {scores, make_scalar(0.35f)}), mask}));
}

TEST(Blas, RefusesWhatOneCallCannotDo) {
  const Expr x = input("x", {9, 48}), r = input("r", {9, 32});
  const Expr y = call("nn.dense", {x, weights({32, 48})});
  EXPECT_THAT(refusal({x}, call("nn.relu", {y})), HasSubstr("nn.relu after a product"));
  EXPECT_THAT(refusal({x}, call("multiply", {call("add", {y, weights({32})}), make_scalar(2.0f)})),
              HasSubstr("add after a product"));
  EXPECT_THAT(refusal({x, r}, call("divide", {r, y})), HasSubstr("divide after a product"));
  const Expr wide = input("wide", {2, 9, 32});
  EXPECT_THAT(refusal({x, wide}, call("add", {y, wide})), HasSubstr("add after a product"));
}

/// What OpenBLAS, which a kernel of the backend loaded, says that it computes with.
int library_threads() {
  void* library = load_library_beside("libcollage_vendor_blas.so").value();
  int (*threads)() = nullptr;
  EXPECT_TRUE(find_function(library, "openblas_get_num_threads", threads).ok());
  return threads == nullptr ? 0 : threads();
}

/// OpenBLAS takes the size of the calling thread's OpenMP team on each call.
TEST(Blas, ComputesWithTheTeam) {
  const Expr x = input("x", {256, 256});
  const Function function = make_function({x}, call("nn.dense", {x, weights({256, 256})}));
  auto variants = backend().variants(function, kTarget, {2, ""});
  auto kernel = backend().compile(function, variants.value()[0], kTarget, {2, ""});
  Tensor in = values({256, 256}, 1), out = Tensor::empty(DType::kFloat32, {256, 256});
  void *from = in.raw(), *to = out.raw();
  const int before = omp_get_max_threads();
  for (int threads : {2, 3, 2}) {
    omp_set_num_threads(threads);
    ASSERT_TRUE(kernel.value()->run({&from, &to, nullptr}).ok());
    EXPECT_EQ(library_threads(), threads);
  }
  omp_set_num_threads(before);
}

/// Several threads of the application, whose teams have two to four threads.
TEST(Blas, TeamsOfSeveralSizesAtOnce) {
  constexpr int kCallers = 6, kRuns = 200;
  const Expr x = input("x", {192, 320});
  const Function function = make_function({x}, call("nn.dense", {x, weights({256, 320})}));
  const Variant variant = backend().variants(function, kTarget, {2, ""}).value()[0];
  const auto run = [](Kernel& kernel, int team, Tensor& in) {
    const TeamScope scope(team);
    Tensor out = Tensor::empty(DType::kFloat32, {192, 256});
    void *from = in.raw(), *to = out.raw();
    EXPECT_TRUE(kernel.run({&from, &to, nullptr}).ok());
    return out;
  };
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0}, ready{0};
  for (int caller = 0; caller < kCallers; ++caller)
    callers.emplace_back([&, caller] {
      const int team = 2 + caller % 3;
      auto kernel = backend().compile(function, variant, kTarget, {team, ""}).value();
      Tensor in = values({192, 320}, caller);
      const Tensor alone = interpret(function, std::span<const Tensor>(&in, 1)).value()[0];
      Tensor first;
      ++ready;
      while (ready < kCallers) std::this_thread::yield();
      for (int i = 0; i < kRuns; ++i) {
        Tensor out = run(*kernel, team, in);
        if (i == 0) first = out;
        wrong += std::memcmp(out.raw(), first.raw(), out.bytes()) != 0;
        for (int64_t e = 0; i == 0 && e < out.size(); ++e)
          wrong += std::abs(out.data<float>()[e] - alone.data<float>()[e]) > 1e-3;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0) << "runs or elements";
}

// Saved and loaded, the kernel expects its weights so.
TEST(Blas, PacksWeightsInTheFormOfItsVersion) {
  backend();
  testing::Graph graph;
  const Function function =
      graph.function(graph.call("nn.dense", {graph.input({5, 24}), graph.constant({16, 24})}));
  const auto variants = backend().variants(function, kTarget, {2, ""});
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  for (const Variant& variant : *variants) {
    const auto kernel = backend().compile(function, variant, kTarget, {2, ""});
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    const Result<SavedKernel> saved = (*kernel)->save();
    ASSERT_TRUE(saved.ok()) << saved.status().to_string();
    std::string part = variant.name;
    std::replace(part.begin(), part.end(), ' ', '_');
    testing::SavedLayouts::all().expect_known_packing(*saved, part);
  }
}

}  // namespace
}  // namespace collage
