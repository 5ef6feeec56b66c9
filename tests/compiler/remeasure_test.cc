// Which figures need one more block: the chosen kernels', and those of what was timed apart from
// them and could stand in their place; by costs that are made up.
#include "choose/remeasure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/targets/backends.h"
#include "ir/expr.h"
#include "measure/blocks.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

// relu(relu(relu(x))) and its candidates.
class Remeasure : public ::testing::Test {
 protected:
  Remeasure() {
    register_all();
    Expr y = make_var("x", TensorType{{4}, DType::kFloat32});
    const Expr x = y;
    for (int i = 0; i < 3; ++i) y = *make_call("nn.relu", {y});
    graph_.emplace(make_function({x}, y));
    spec_ = std::make_shared<PartitionSpec>(PartitionSpec{"native", nullptr, {"native", {}, {}}});
  }

  // Of the calls numbered so (node 0 is x), with a variant for each cost in ms.
  size_t add(const std::vector<size_t>& calls, const std::vector<double>& ms) {
    IndexSet nodes;
    for (size_t call : calls) nodes.insert(call);
    auto costs = std::make_shared<TargetCosts>();
    costs->target = "native";
    for (double cost : ms) {
      Variant variant{"v" + std::to_string(costs->variants.size()), {}, {}};
      costs->variants.push_back({variant, Measured{1e-3 * cost, 1e-3 * cost, 1e-3 * cost, 20}});
    }
    candidates_.push_back(
        {{"", SubGraph::of(*graph_, nodes), spec_}, graph_->function(), std::move(costs)});
    return candidates_.size() - 1;
  }
  // The cover of those candidates, each in its first variant.
  NamedCover cover_of(const std::vector<size_t>& chosen) const {
    NamedCover cover;
    for (size_t c : chosen) cover.kernels.push_back({c, 0, figure(c, 0).seconds()});
    return cover;
  }
  std::vector<std::pair<size_t, size_t>> looks_at_all(const std::vector<NamedCover>& covers) const {
    std::vector<std::pair<size_t, size_t>> list;
    for (const auto& [candidate, variant] : worth_remeasuring(covers, candidates_))
      list.emplace_back(candidate, variant);
    return list;
  }
  std::vector<std::pair<size_t, size_t>> looks_at(const std::vector<size_t>& chosen) const {
    return looks_at_all({cover_of(chosen)});
  }

  const Measured& figure(size_t candidate, size_t variant) const {
    return *measured(candidates_[candidate].costs->variants[variant].cost);
  }
  void set(size_t candidate, size_t variant, std::vector<Block> blocks) {
    auto costs = std::make_shared<TargetCosts>(*candidates_[candidate].costs);
    costs->variants[variant].cost = of_blocks(std::move(blocks));
    candidates_[candidate].costs = costs;
  }

  std::optional<DataflowGraph> graph_;
  std::shared_ptr<const PartitionSpec> spec_;
  std::vector<CostedCandidate> candidates_;
};

TEST_F(Remeasure, AtTheKernelsAndWhatDoesTheWorkOfSeveral) {
  const size_t one = add({1}, {1}), two = add({2}, {1}), three = add({3}, {1});
  const size_t pair = add({2, 3}, {3, 2.1, 2.8});
  add({1, 2}, {2.4});  // too dear by more than noise
  const size_t all = add({1, 2, 3}, {3.2});
  EXPECT_THAT(looks_at({one, two, three}),
              ElementsAre(std::pair(one, 0), std::pair(two, 0), std::pair(three, 0),
                          std::pair(pair, 1), std::pair(all, 0)));
}

TEST_F(Remeasure, AtTheKernelsOfEveryCover) {
  // The second would cost less, had its one kernel not been measured in a slow minute.
  const size_t first = add({1, 2}, {1}), last = add({3}, {1});
  const size_t all = add({1, 2, 3}, {4});
  EXPECT_THAT(looks_at_all({cover_of({first, last}), cover_of({all}), cover_of({first, last})}),
              ElementsAre(std::pair(first, 0), std::pair(last, 0), std::pair(all, 0)));
}

TEST_F(Remeasure, OnceAtCostsThatAreShared) {
  const size_t one = add({1}, {1}), two = add({2}, {1}), three = add({3}, {1});
  candidates_[three].costs = candidates_[one].costs;
  EXPECT_THAT(looks_at({one, two, three}), ElementsAre(std::pair(one, 0), std::pair(two, 0)));
}

TEST_F(Remeasure, NotAtWhatComputesPartOfAKernel) {
  const size_t first = add({1, 2}, {1}), last = add({3}, {1});
  add({2, 3}, {1});
  add({1}, {0.1});
  EXPECT_THAT(looks_at({first, last}), ElementsAre(std::pair(first, 0), std::pair(last, 0)));
}

TEST_F(Remeasure, NotAtAnotherVariantOfAKernel) {
  // They were timed together.
  const size_t own = add({1, 2, 3}, {1, 1.1});
  EXPECT_THAT(looks_at({own}), ElementsAre(std::pair(own, 0)));
}

TEST_F(Remeasure, AtAnotherTargetsKernelForTheSameNodes) {
  const size_t own = add({1, 2, 3}, {1, 1.1});
  const size_t other = add({1, 2, 3}, {1.1, 1.2});
  add({1, 2, 3}, {2.1});  // too dear by more than noise
  EXPECT_THAT(looks_at({own}), ElementsAre(std::pair(own, 0), std::pair(other, 0)));
}

TEST_F(Remeasure, AtWhatWasDisturbedAndMayBeLess) {
  const size_t first = add({1, 2}, {1, 2, 2, 2}), last = add({3}, {1});
  const size_t all = add({1, 2, 3}, {4, 4, 4});
  const auto disturb = [&](size_t candidate, size_t variant, double p10, double p90) {
    Block block = blocks_of(figure(candidate, variant))[0];
    block.p10 = 1e-3 * p10;
    block.p90 = 1e-3 * p90;
    block.disturbed = true;
    set(candidate, variant, {block});
  };
  disturb(first, 1, 0.9, 2.5);  // where one was disturbed, its rivals were not as much
  disturb(first, 2, 1.1, 2.5);
  disturb(first, 3, 1.9, 2.1);
  disturb(all, 1, 1.9, 4.5);  // as much as two kernels do together
  disturb(all, 2, 2.1, 4.5);
  EXPECT_THAT(looks_at({first, last}), ElementsAre(std::pair(first, 0), std::pair(last, 0),
                                                   std::pair(first, 1), std::pair(all, 1)));
}

TEST_F(Remeasure, UntilTwoBlocksAgree) {
  const size_t own = add({1, 2, 3}, {1});
  const auto block = [](double ms, bool disturbed = false) {
    return Block{1e-3 * ms, 1e-3 * ms, 1e-3 * ms, 20, disturbed};
  };
  const auto once_more = ElementsAre(std::pair(own, 0));
  set(own, 0, {block(1), block(1.02)});
  EXPECT_THAT(looks_at({own}), ElementsAre());
  set(own, 0, {block(1), block(1.3)});
  EXPECT_THAT(looks_at({own}), once_more);
  set(own, 0, {block(1), block(1, true)});
  EXPECT_THAT(looks_at({own}), once_more);
  set(own, 0, {block(1), block(1.3), block(1.6)});
  EXPECT_THAT(looks_at({own}), ElementsAre()) << "it never will be quiet";
}

TEST_F(Remeasure, AtTheOtherPrecision) {
  // It was timed at another moment.
  const size_t own = add({1, 2, 3}, {1, 1.2, 1.1, 0.9});
  auto costs = std::make_shared<TargetCosts>(*candidates_[own].costs);
  for (size_t v : {1, 2}) costs->variants[v].variant.rounding = rounding::kBFloat16;
  candidates_[own].costs = costs;
  EXPECT_THAT(looks_at({own}), ElementsAre(std::pair(own, 0), std::pair(own, 2)));
}

}  // namespace
}  // namespace collage
