// Twins of a kernel that run at once: each gives the bits that the kernel gives when nobody else
// runs.
#include <cstring>

#include "backend/contraction/check.h"
#include "runtime/on_threads.h"
#include "runtime/thread_team.h"

namespace collage::testing {
namespace {

constexpr int kTwins = 3, kRuns = 4;

struct TwinOffer {
  const Backend& backend;
  Target target;
  bool lowered;
};

std::vector<TwinOffer> offers() {
  return {{amx_backend(), {"amx", {}, {}}, false}, {amx_backend(), {"amx", {}, {}}, true}};
}

std::vector<Tensor> inputs_of(const Function& function, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    inputs.push_back(
        random_tensor(param->tensor_type().shape, 1000 * (seed + 1) + inputs.size(), 2));
  return inputs;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()) == 0;
  return same;
}

void check_twins(Kernel& kernel, const Function& function, const Variant& variant, int threads) {
  std::vector<std::shared_ptr<Kernel>> twins;
  std::vector<std::vector<Tensor>> inputs, expected;
  for (int t = 0; t < kTwins; ++t) {
    Result<std::shared_ptr<Kernel>> twin = kernel.twin();
    ASSERT_TRUE(twin.ok()) << twin.status().to_string();
    if (*twin != nullptr) {
      EXPECT_EQ((*twin)->workspace_bytes(), kernel.workspace_bytes());
      EXPECT_EQ((*twin)->constant_bytes(), kernel.constant_bytes());
    }
    twins.push_back(*twin);
    inputs.push_back(inputs_of(function, static_cast<uint64_t>(t)));
    expected.push_back(run_guarded(kernel, function, variant, inputs.back()));
  }
  std::vector<int> differing(kTwins, 0);
  on_threads(kTwins, [&](int t) {
    const auto own = static_cast<size_t>(t);
    const TeamScope team(threads);
    Kernel& mine = twins[own] != nullptr ? *twins[own] : kernel;
    for (int run = 0; run < kRuns; ++run)
      differing[own] +=
          same_bits(run_guarded(mine, function, variant, inputs[own]), expected[own]) ? 0 : 1;
  });
  EXPECT_EQ(differing, std::vector<int>(kTwins, 0)) << "runs of each twin with other bits";
}

// Every variant that is offered, on one thread and on two; how many there were.
size_t check_all(const Function& function) {
  size_t checked = 0;
  for (const TwinOffer& offer : offers())
    for (const int threads : {1, 2}) {
      const CompileOptions options{threads, ""};
      const auto variants =
          variants_of(offer.backend, function, offer.target, options, offer.lowered);
      EXPECT_TRUE(variants.ok()) << variants.status().to_string();
      if (!variants.ok()) continue;
      for (const Variant& variant : *variants) {
        SCOPED_TRACE(offer.target.to_string() + " " + variant.to_string());
        auto kernel = offer.backend.compile(function, variant, offer.target, options);
        EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
        if (!kernel.ok()) continue;
        const TeamScope team(threads);
        check_twins(**kernel, function, variant, threads);
        ++checked;
      }
    }
  return checked;
}

// Threads share out rows of the result where there are many, otherwise columns.
TEST(Twins, OfProductsRunAtOnce) {
  for (const int64_t rows : {70, 20}) {
    SCOPED_TRACE(rows);
    Graph graph;
    const Expr y = graph.call("nn.dense", {graph.input({rows, 96}), graph.constant({80, 96}, 0.1)});
    EXPECT_GE(check_all(graph.function(graph.call("nn.relu", {y}))), 6u);
  }
}

TEST(Twins, OfConvolutionsRunAtOnce) {
  for (const int64_t side : {10, 4}) {
    SCOPED_TRACE(side);
    Graph graph;
    const Expr y = conv(graph, {{1, 32, side, side}, 64, {3, 3}, {1, 1}, {1, 1, 1, 1}});
    EXPECT_GE(check_all(graph.function(y)), 6u);
  }
}

TEST(Twins, OfAttentionRunAtOnce) {
  Graph graph;
  const Expr y = graph.call(
      "nn.attention",
      {graph.input({1, 3, 40, 32}), graph.input({1, 3, 40, 32}), graph.input({1, 3, 40, 32})},
      {{"scale", 0.2}, {"causal", true}});
  EXPECT_GE(check_all(graph.function(y)), 2u);
}

}  // namespace
}  // namespace collage::testing
