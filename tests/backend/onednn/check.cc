#include "backend/onednn/check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/offer.h"
#include "backend/onednn/onednn_backend.h"
#include "ops/registry.h"
#include "runtime/thread_team.h"

namespace collage::testing {

namespace {

const Target kTarget{"onednn", {}, {}};
const CompileOptions kTwoThreads{2, ""};

const Backend& backend() {
  static const Backend* instance = [] {
    register_all_ops();
    return make_onednn_backend().release();
  }();
  return *instance;
}

// One quantum, in one of a thousand elements: what is rounded was computed in another order.
void run_rounding_variant(const Function& function, const Variant& variant,
                          const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected) {
  double largest = 1e-2;
  for (int64_t i = 0; i < expected[0].size(); ++i)
    largest = std::max(largest, std::abs(expected[0].element_as_double(i)));
  check_variant(backend(), kTarget, kTwoThreads, function, variant, inputs, expected,
                {.mean = 0, .largest = 1.001 / largest, .element = 0});
  auto kernel = backend().compile(function, variant, kTarget, kTwoThreads);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  const TeamScope team(kTwoThreads.threads);
  const std::vector<Tensor> got = run_guarded(**kernel, function, variant, inputs);
  int64_t others = 0;
  for (int64_t i = 0; i < expected[0].size(); ++i)
    others += got[0].element_as_int64(i) != expected[0].element_as_int64(i);
  EXPECT_LE(others, 1 + expected[0].size() / 1000) << variant.to_string();
}

void run_variant(const Function& function, const Variant& variant,
                 const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected,
                 double tolerance) {
  if (is_integer(expected[0].dtype()))
    return run_rounding_variant(function, variant, inputs, expected);
  check_variant(backend(), kTarget, kTwoThreads, function, variant, inputs, expected,
                {.mean = tolerance, .element = std::max(1e-5, tolerance / 2)});
}

}  // namespace

Checked check(const Function& function, double tolerance) {
  Checked checked;
  auto variants = backend().variants(function, kTarget, kTwoThreads);
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  if (!variants.ok()) return checked;
  EXPECT_FALSE(variants->empty());
  const std::vector<Tensor> inputs = random_inputs(function);
  const std::vector<Tensor> expected = evaluate(function, inputs);
  for (const Variant& variant : *variants) {
    run_variant(function, variant, inputs, expected, tolerance);
    EXPECT_EQ(variant.rounding.limit() == RoundingLimit::kDefault,
              variant.name.starts_with("winograd"))
        << variant.to_string();
    checked.names.insert(variant.name);
    checked.layouts.insert(variant.outputs[0].layout.to_string());
    checked.variants.push_back(variant.to_string());
  }
  return checked;
}

Checked check_lowered(const Function& function, double tolerance) {
  Checked checked;
  CompileOptions options = kTwoThreads;
  options.rounding = RoundingLimit::kAny;
  auto variants = variants_to_cost(backend(), function, kTarget, options);
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  if (!variants.ok()) return checked;
  const std::vector<Tensor> inputs = random_inputs(function);
  const std::vector<Tensor> expected = evaluate(function, inputs);
  for (const Variant& variant : *variants) {
    EXPECT_TRUE(variant.lowered()) << variant.to_string();
    run_variant(function, variant, inputs, expected, tolerance);
    checked.names.insert(variant.name);
    checked.layouts.insert(variant.outputs[0].to_string());
    checked.variants.push_back(variant.to_string());
  }
  return checked;
}

std::string refusal(const Function& function) {
  auto variants = backend().variants(function, kTarget, kTwoThreads);
  EXPECT_FALSE(variants.ok());
  return variants.ok() ? "" : variants.status().to_string();
}

}  // namespace collage::testing
