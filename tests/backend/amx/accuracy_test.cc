// How far sums of products of parts are from the true ones, beside a plain sum in float32; what
// values beyond bfloat16's range become; and that the unit's state is left as others set it.
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "backend/contraction/check.h"
#include "backend/targets/backends.h"

namespace collage::testing {
namespace {

constexpr int64_t kRows = 64, kColumns = 48;

struct Errors {
  double mean = 0;  // root of the mean square
  double largest = 0;
};
Errors errors(const std::vector<double>& exact, const float* values) {
  Errors e;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double error = std::abs(exact[i] - static_cast<double>(values[i]));
    e.mean += error * error / static_cast<double>(exact.size());
    e.largest = std::max(e.largest, error);
  }
  e.mean = std::sqrt(e.mean);
  return e;
}

using Draw = std::function<float(std::mt19937&)>;
struct Values {
  const char* name;
  Draw draw;
};
const Values kValues[] = {
    {"uniform", [](std::mt19937& r) { return std::uniform_real_distribution<float>(-1, 1)(r); }},
    {"positive", [](std::mt19937& r) { return std::uniform_real_distribution<float>(0, 1)(r); }},
    {"normal", [](std::mt19937& r) { return std::normal_distribution<float>(0, 1)(r); }},
    {"six decades", [](std::mt19937& r) {
       const float size = std::pow(10.0f, std::uniform_real_distribution<float>(-3, 3)(r));
       return r() % 2 == 0 ? size : -size;
     }}};

Tensor drawn(Shape shape, const Draw& draw, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = draw(random);
  return tensor;
}

TEST_F(MatrixUnit, ErrorsBesideAFloat32Sum) {
  for (const auto& [name, draw] : kValues)
    for (const int64_t depth : {64, 576, 4608}) {
      SCOPED_TRACE(std::string(name) + " of " + std::to_string(depth));
      const Tensor a = drawn({kRows, depth}, draw, 1), w = drawn({kColumns, depth}, draw, 2);
      std::vector<double> exact;
      std::vector<float> direct;
      double terms = 0;  // the sum of a result's squared terms, on average
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kColumns; ++j) {
          double sum = 0;
          float single = 0;
          for (int64_t k = 0; k < depth; ++k) {
            const float x = a.data<float>()[i * depth + k], y = w.data<float>()[j * depth + k];
            const double term = static_cast<double>(x) * static_cast<double>(y);
            sum += term;
            terms += term * term / (kRows * kColumns);
            single = std::fma(x, y, single);
          }
          exact.push_back(sum);
          direct.push_back(single);
        }
      const Errors plain = errors(exact, direct.data());
      Graph graph;
      const Function function =
          graph.function(graph.call("nn.dense", {graph.input(a.shape()), make_constant(w)}));
      for (const Target& target : {Target{"amx", {}, {}}, Target{"amx", {{"parts", "3"}}, {}}}) {
        auto variants = amx_backend().variants(function, target, {1, ""});
        ASSERT_TRUE(variants.ok()) << variants.status().to_string();
        auto kernel = amx_backend().compile(function, variants->front(), target, {1, ""});
        ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
        const Tensor got = run_guarded(**kernel, function, variants->front(), {a}).front();
        const Errors e = errors(exact, got.data<float>());
        if (target.options.empty()) {  // what the parts lack, beside what adding up loses
          EXPECT_LE(e.mean, 1.5 * 0x1p-18 * std::sqrt(terms) + plain.mean);
        } else {
          EXPECT_LE(e.mean, plain.mean);
          EXPECT_LE(e.largest, plain.largest);
        }
      }
    }
}

TEST_F(MatrixUnit, TwoProductsRoundTheImageAlone) {
  constexpr int64_t kDepth = 576;
  const Tensor w = drawn({kColumns, kDepth}, kValues[0].draw, 2);
  const Draw whole = [](std::mt19937& r) { return static_cast<float>(r() % 256) - 128; };
  const Tensor a = drawn({kRows, kDepth}, whole, 1);  // as bfloat16 it is the same
  Graph graph;
  const Function function =
      graph.function(graph.call("nn.dense", {graph.input(a.shape()), make_constant(w)}));
  std::vector<double> exact;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        sum += static_cast<double>(a.data<float>()[i * kDepth + k]) *
               static_cast<double>(w.data<float>()[j * kDepth + k]);
      exact.push_back(sum);
    }
  const Target target{"amx", {}, {}};
  auto variants = variants_to_cost(amx_backend(), function, target, {1, "", RoundingLimit::kAny});
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  std::map<std::string, double> mean;  // by the variant's first word
  for (const Variant& variant : *variants) {
    auto kernel = amx_backend().compile(function, variant, target, {1, ""});
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    const Tensor got = run_guarded(**kernel, function, variant, {a}).front();
    mean[variant.name.substr(0, variant.name.find(' '))] = errors(exact, got.data<float>()).mean;
  }
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_LT(mean.at("bf16x2"), mean.at("bf16") * 0x1p-6);
}

TEST_F(MatrixUnit, ValuesBeyondBfloat16BecomeNaN) {
  Graph graph;
  const Function function =
      graph.function(graph.call("nn.dense", {graph.input({16, 32}), graph.constant({16, 32})}));
  const Tensor given = random_tensor({16, 32}, 3);
  for (const float large : {INFINITY, -INFINITY, 3.4e38f, -3.4e38f}) {
    Tensor x = given.clone();
    x.data<float>()[4 * 32 + 9] = large;
    auto variants = amx_backend().variants(function, {"amx", {}, {}}, {1, ""});
    ASSERT_TRUE(variants.ok());
    auto kernel = amx_backend().compile(function, variants->front(), {"amx", {}, {}}, {1, ""});
    ASSERT_TRUE(kernel.ok());
    const Tensor got = run_guarded(**kernel, function, variants->front(), {x}).front();
    for (int64_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(std::isnan(got.data<float>()[i]), i / 16 == 4) << large << " at " << i;
  }
}

// oneDNN's kernels in bfloat16 use the unit too and keep its tiles in shapes of their own.
TEST_F(MatrixUnit, TakesTurnsWithOneDnn) {
  register_all();
  const Backend* onednn = find_backend("onednn");
  if (onednn == nullptr || !onednn->traits().lowers) GTEST_SKIP() << "no oneDNN in bfloat16";
  const CompileOptions options{2, ""};
  Graph graph;
  const Function function = graph.function(
      graph.call("nn.dense", {graph.input({70, 96}), graph.constant({80, 96}, 0.1)}));
  const std::vector<Tensor> inputs = random_inputs(function);
  const Target ours{"amx", {}, {}}, theirs{"onednn", {}, {}};
  auto lowered = variants_to_cost(*onednn, function, theirs, {2, "", RoundingLimit::kAny});
  auto variants = amx_backend().variants(function, ours, options);
  ASSERT_TRUE(lowered.ok() && variants.ok());
  struct Turn {
    std::unique_ptr<Kernel> kernel;
    Variant variant;
    std::vector<Tensor> alone;
  };
  std::vector<Turn> turns;
  const auto add = [&](const Backend& backend, const Variant& variant, const Target& target) {
    auto kernel = backend.compile(function, variant, target, options);
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    std::vector<Tensor> alone = run_guarded(**kernel, function, variant, inputs);
    turns.push_back({std::move(*kernel), variant, std::move(alone)});
  };
  for (const Variant& variant : *lowered) {
    add(*onednn, variant, theirs);
    add(amx_backend(), variants->front(), ours);
  }
  for (int round = 0; round < 3; ++round)
    for (Turn& turn : turns) {
      const Tensor got = run_guarded(*turn.kernel, function, turn.variant, inputs).front();
      for (int64_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got.data<float>()[i], turn.alone[0].data<float>()[i])
            << turn.variant.to_string() << " at " << i;
    }
}

}  // namespace
}  // namespace collage::testing
