// What the check of kernels accepts: right kernels, however they add up, with what their variants
// say that they round; alone and in networks. And that each allowance is needed and no wider than
// its kind of rounding: a kernel of the next coarser kind is refused.
#include <gtest/gtest.h>

#include "arithmetic.h"
#include "ir/visitor.h"
#include "networks.h"
#include "ops/cases.h"
#include "ops/registry.h"

namespace collage {
namespace {

using testing::Arithmetic;
using testing::on_trial_data;

struct Verdict {
  bool within = true;
  double of_allowed = 0;       // the largest error, as a part of the allowed one
  double mean_of_allowed = 0;  // by root mean squares
  double error_of_rms = 0;     // root mean square, as a part of the output's
};

Verdict judge(const std::vector<Tensor>& actual, RoundingErrors& errors, const Rounding& rounding) {
  Verdict verdict;
  for (size_t o = 0; o < actual.size(); ++o) {
    const Difference d = errors.compare(o, actual[o], rounding).value();
    verdict.within = verdict.within && d.within;
    verdict.of_allowed = std::max(verdict.of_allowed, d.worst_of_allowed);
    verdict.mean_of_allowed = std::max(verdict.mean_of_allowed, d.mean_of_allowed);
    verdict.error_of_rms = std::max(verdict.error_of_rms, d.rms_rel);
  }
  return verdict;
}

Verdict judge(const Function& function, const Arithmetic& arithmetic, const Rounding& rounding) {
  RoundingErrors errors = on_trial_data(function);
  const auto actual =
      interpret(inline_calls(function).value(), errors.inputs(), arithmetic.evaluate);
  const Verdict verdict = judge(actual.value(), errors, rounding);
  ::testing::Test::RecordProperty("of_allowed", std::to_string(verdict.of_allowed));
  return verdict;
}

struct Network {
  const char* name;
  Function function;
};
std::vector<Network> networks() {
  register_all_ops();
  return {{"one block", testing::residual_network(1, 64, 14)},
          {"twelve convolutions", testing::residual_network(6, 24, 12)},
          {"transformer", testing::transformer(4, 24, 64)}};
}

std::vector<Arithmetic> float32_sums() {
  return {testing::forward_sums(), testing::backward_sums()};
}
std::vector<Arithmetic> all_arithmetics() {
  std::vector<Arithmetic> all = float32_sums();
  all.insert(all.end(), {testing::winograd(2), testing::winograd(4), testing::bfloat16_pairs(),
                         testing::bfloat16(), testing::integers(12), testing::integers(10)});
  return all;
}

TEST(HonestKernels, AreAcceptedWithWhatTheyRound) {
  for (const Network& network : networks())
    for (const Arithmetic& arithmetic : all_arithmetics()) {
      const Verdict v = judge(network.function, arithmetic, arithmetic.rounding);
      fmt::print("{:20} {:15} largest {:.2f} mean {:.2f} of the allowed error, errs by {:.2g}\n",
                 network.name, arithmetic.name, v.of_allowed, v.mean_of_allowed, v.error_of_rms);
      EXPECT_TRUE(v.within) << network.name << ", " << arithmetic.name << ": " << v.of_allowed
                            << ", " << v.mean_of_allowed;
    }
}

TEST(HonestKernels, ThatComputeInDoubleAreAccepted) {
  for (const Network& network : networks()) {
    RoundingErrors errors = on_trial_data(network.function);
    const auto exact = testing::evaluate_in_double(network.function, errors.inputs());
    const Verdict v = judge(exact, errors, {});
    EXPECT_TRUE(v.within) << network.name << " " << v.of_allowed << " " << v.mean_of_allowed;
  }
}

TEST(HonestKernels, OfANetworkMayErrByFloat32sRoundingsOnly) {
  for (const Network& network : networks()) {
    const Verdict v = judge(network.function, testing::forward_sums(), {});
    EXPECT_LT(v.error_of_rms, 5e-5) << network.name;
    EXPECT_GT(v.mean_of_allowed, 0.02) << network.name << ": the model is far too pessimistic";
  }
}

TEST(HonestKernels, ThatRoundMoreThanTheySayAreRefused) {
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name);
    const auto refused = [&](const Arithmetic& arithmetic, const Rounding& stated) {
      return !judge(network.function, arithmetic, stated).within;
    };
    EXPECT_TRUE(refused(testing::bfloat16(), {}));
    EXPECT_TRUE(refused(testing::bfloat16(), rounding::kBFloat16Pairs));
    EXPECT_TRUE(refused(testing::bfloat16(), testing::integers(12).rounding));
    EXPECT_TRUE(refused(testing::integers(12), {}));
    EXPECT_TRUE(refused(testing::integers(12), rounding::kWinograd4));
    EXPECT_TRUE(refused(testing::integers(12), rounding::kBFloat16Pairs));
  }
}

}  // namespace
}  // namespace collage
