#include "backend/contraction/check.h"

#include <algorithm>

#include "backend/amx/amx_backend.h"
#include "backend/contraction/kernels/processor.h"
#include "ops/registry.h"
#include "partition/rules/rule.h"

namespace collage {

// Compiled against the software model.
std::unique_ptr<Backend> make_amx_in_software();

namespace testing {

namespace {

using Make = std::unique_ptr<Backend> (*)();

const Backend* made(Make make) {
  register_all_ops();
  return make().release();
}

}  // namespace

const Backend& amx_in_software() {
  static const Backend* instance = made(make_amx_in_software);
  return *instance;
}

const Backend& amx_backend() {
  if (!contraction::matrix_unit().ok()) return amx_in_software();
  static const Backend* instance = made(make_amx_backend);
  return *instance;
}

Result<std::vector<Variant>> variants_of(const Backend& backend, const Function& function,
                                         const Target& target, CompileOptions options,
                                         bool lowered) {
  if (lowered) options.rounding = RoundingLimit::kAny;
  return variants_to_cost(backend, function, target, options);
}

int trials(int all) { return contraction::matrix_unit().ok() ? all : all / 5; }

namespace {

struct Offer {
  const Backend& backend;
  Target target;
  bool lowered;
  Tolerance tolerance;
};

void check_offers(const std::vector<Offer>& offers, const Function& function,
                  std::vector<Tensor> inputs) {
  if (inputs.empty()) inputs = random_inputs(function);
  const std::vector<Tensor> expected = evaluate(function, inputs);
  for (const int threads : {1, 3})
    for (const auto& [backend, target, lowered, tolerance] : offers) {
      SCOPED_TRACE(target.to_string() + " on " + std::to_string(threads) + " threads");
      const CompileOptions options{threads, ""};
      auto variants = variants_of(backend, function, target, options, lowered);
      ASSERT_TRUE(variants.ok()) << variants.status().to_string();
      EXPECT_FALSE(variants->empty());
      for (const Variant& variant : *variants) {
        EXPECT_EQ(variant.rounding.limit(), lowered                  ? RoundingLimit::kAny
                                            : target.options.empty() ? RoundingLimit::kDefault
                                                                     : RoundingLimit::kStrict);
        check_variant(backend, target, options, function, variant, inputs, expected, tolerance);
      }
    }
}

std::vector<Offer> amx_offers() {
  return {
      {amx_backend(), {"amx", {}, {}}, false, {.mean = 0, .largest = 2e-5}},
      {amx_backend(),
       {"amx", {{"parts", "3"}}, {}},
       false,
       {.mean = 0, .largest = 1e-6, .element = 2e-6}},
      {amx_backend(), {"amx", {}, {}}, true, {.mean = 0, .largest = 1e-2, .element = 1e-2}},
  };
}

}  // namespace

void check_amx(const Function& function, std::vector<Tensor> inputs) {
  check_offers(amx_offers(), function, std::move(inputs));
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

}  // namespace testing
}  // namespace collage
