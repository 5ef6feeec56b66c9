#include "backend/amx/check.h"

#include "backend/amx/amx_backend.h"
#include "backend/amx/tiles.h"
#include "ops/registry.h"
#include "partition/rules/rule.h"

namespace collage::testing {

const Backend& amx_backend() {
  static const Backend* instance = [] {
    register_all_ops();
    return make_amx_backend().release();
  }();
  return *instance;
}

void MatrixUnit::SetUp() {
  if (const Status status = amx::matrix_unit(); !status.ok()) GTEST_SKIP() << status.message();
}

void check_amx(const Function& function, std::vector<Tensor> inputs) {
  struct Offer {
    Target target;
    bool lowered;
    Tolerance tolerance;
  };
  const Offer offers[] = {
      {{"amx", {}, {}}, false, {.mean = 0, .largest = 2e-5}},
      {{"amx", {{"parts", "3"}}, {}}, false, {.mean = 0, .largest = 1e-6, .element = 2e-6}},
      {{"amx", {}, {}}, true, {.mean = 0, .largest = 1e-2, .element = 1e-2}},
  };
  if (inputs.empty()) inputs = random_inputs(function);
  const std::vector<Tensor> expected = evaluate(function, inputs);
  for (const int threads : {1, 3})
    for (const auto& [target, lowered, tolerance] : offers) {
      SCOPED_TRACE(target.to_string() + " on " + std::to_string(threads) + " threads");
      const CompileOptions options{threads, ""};
      auto variants = lowered ? amx_backend().lowered_variants(function, target, options)
                              : amx_backend().variants(function, target, options);
      ASSERT_TRUE(variants.ok()) << variants.status().to_string();
      EXPECT_FALSE(variants->empty());
      for (const Variant& variant : *variants) {
        EXPECT_EQ(variant.lowered, lowered);
        EXPECT_EQ(variant.relaxed, !lowered && target.options.empty());
        check_variant(amx_backend(), target, options, function, variant, inputs, expected,
                      tolerance);
      }
    }
}

std::string refusal(const Function& function) {
  auto variants = amx_backend().variants(function, {"amx", {}, {}}, {2, ""});
  EXPECT_FALSE(variants.ok());
  return variants.ok() ? "" : variants.status().to_string();
}

std::vector<std::string> candidate_labels(const Function& function) {
  const DataflowGraph graph(function);
  const Target target{"amx", {}, {}};
  const auto spec = std::make_shared<const PartitionSpec>(
      PartitionSpec{"amx", amx_backend().partition_rule(target), target});
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : all_candidates(graph, spec))
    labels.push_back(candidate.sub_graph.ops_label(graph));
  return labels;
}

}  // namespace collage::testing
