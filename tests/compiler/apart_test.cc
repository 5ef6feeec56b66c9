// Targets that may not meet are in no cover together, whoever finds it.
#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "compiler/decision.h"
#include "compiler/given_model.h"

namespace collage {
namespace {

class Apart : public testing::GivenModel {
 protected:
  explicit Apart(const char* text = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32], %w: Tensor[(32, 64), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.relu(%0);
  %2 = floor(%1);
  nn.softmax(%2)
}
)")
      : GivenModel(text) {}

  // The targets of each cover, the host left out; onednn and native are declared to be apart.
  std::vector<std::set<std::string>> targets_of_covers() {
    const std::filesystem::path config = folder_ / "apart.json";
    std::ofstream(config) << R"({"targets": [{"name": "onednn"}, {"name": "native"}],
                                 "incompatible": [["native", "onednn"]]})";
    options_.targets.clear();
    options_.config = config;
    const Result<Candidates> candidates = find_candidates(given_, options_);
    EXPECT_TRUE(candidates.ok()) << candidates.status().to_string();
    if (!candidates) return {};
    const Model model = model_of(given_);
    const auto context = CompileContext::open(model, options_, *candidates, nullptr).value();
    const Result<Decision> decision = decide(*candidates, *context);
    EXPECT_TRUE(decision.ok()) << decision.status().to_string();
    std::vector<std::set<std::string>> result;
    if (!decision) return result;
    for (const NamedCover& cover : decision->found.covers) {
      std::set<std::string>& targets = result.emplace_back();
      for (const Cover::Kernel& kernel : cover.kernels)
        if (const CostedCandidate& used = decision->found.candidates[kernel.candidate];
            !used.is_host())
          targets.insert(used.partition.spec->name);
    }
    return result;
  }
};

TEST_F(Apart, AreTargetsInFirstAnswers) {
  options_.budget_seconds = 0;
  const std::vector<std::set<std::string>> covers = targets_of_covers();
  EXPECT_THAT(covers, ::testing::Contains(std::set<std::string>{"onednn"}));
  EXPECT_THAT(covers, ::testing::Each(::testing::SizeIs(1)));
}

TEST_F(Apart, AreTargetsInSearches) {
  const std::vector<std::set<std::string>> covers = targets_of_covers();
  EXPECT_THAT(covers, ::testing::IsSupersetOf(
                          {std::set<std::string>{"onednn"}, std::set<std::string>{"native"}}));
  EXPECT_THAT(covers, ::testing::Each(::testing::SizeIs(1)));
}

class ApartAndStated : public Apart {
 protected:
  ApartAndStated()
      : Apart(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) {
  %0 = fn (%p: Tensor[(4, 64), float32], Primitive=1, Target="native") {
    nn.relu(%p)
  };
  %1 = %0(%x);
  nn.softmax(%1)
}
)") {}
};

// The first set of targets that may meet has no cover.
TEST_F(ApartAndStated, IsWhatTheOthersCannotDo) {
  const std::vector<std::set<std::string>> covers = targets_of_covers();
  EXPECT_FALSE(covers.empty());
  EXPECT_THAT(covers, ::testing::Each(std::set<std::string>{"native"}));
}

}  // namespace
}  // namespace collage
