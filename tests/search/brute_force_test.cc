// The search finds what trying every cover finds, on random graphs.
#include <gtest/gtest.h>

#include <random>

#include "search/fixture.h"
#include "search/oracle.h"

namespace collage {
namespace {

const std::vector<std::string> kLayouts = {"", "A2a", "A4a"};
// Two devices, three memory scopes in all, and layouts.
const std::vector<std::string> kPlaces = {"", "A2a", "@gpu", "A2a@gpu", "@gpu/scratch"};

// A random problem on a random graph: candidates of any shape that is convex, with one exit or
// several, in several encodings.
class RandomProblem {
 public:
  RandomProblem(unsigned seed, bool several_exits,
                const std::vector<std::string>& encodings = kLayouts, bool at_caller = false)
      : random_(seed), encodings_(encodings) {
    static const std::vector<std::string> kOps = {"relu", "add", "conv", "reshape", "split", "add"};
    size_t count = 3 + pick(12);
    std::string text = "x; y";
    std::vector<std::string> tensors = {"x", "y"};
    if (at_caller) {
      register_placements();
      text += "; p = on_gpu(x)";
      tensors[0] = "p";
    }
    std::set<std::string> unread;  // beside the last two tensors, the results
    for (size_t i = 0; i < count; ++i) {
      std::string name = "n" + std::to_string(i);
      std::string op = kOps[pick(kOps.size())];
      auto tensor = [&] {  // mostly recent ones
        size_t back = std::min(pick(4), tensors.size() - 1);
        return tensors[tensors.size() - 1 - back];
      };
      std::string first = tensor(), second = tensor();
      unread.erase(first);
      if (op == "add") unread.erase(second);
      text += "; " + name + " = " + op + "(" + first +
              (op == "add"    ? ", " + second
               : op == "conv" ? ", c"
                              : "") +
              ")";
      if (op == "split") {
        text += "; " + name + "p = " + name + ".0; " + name + "q = " + name + ".1";
        tensors.push_back(name + "p");
        tensors.push_back(name + "q");
      } else {
        tensors.push_back(name);
        unread.insert(name);
      }
    }
    unread.erase(tensors.back());
    unread.erase(tensors[tensors.size() - 2]);
    if (at_caller) {
      text += "; r = for_gpu(" + tensors.back() + ")";
      tensors.back() = "r";
    }
    text += "; return tuple(" + tensors.back() + ", " + tensors[tensors.size() - 2];
    for (const std::string& tensor : unread) text += ", " + tensor;
    text += ")";
    fixture_ = std::make_unique<Fixture>(text);
    text_ = text;
    add_candidates(several_exits);
    const size_t known = encodings_.size();
    std::vector<double> costs(known * known);
    for (double& cost : costs) cost = pick(8) == 0 ? kInfinity : 0.25 * double(1 + pick(12));
    std::vector<Encoding> all;
    for (const std::string& text : encodings_) all.push_back(encoding(text));
    fixture_->problem.conversion_cost = [costs, all, known](const TensorType&, const Encoding& from,
                                                            const Encoding& to) {
      auto index = [&](const Encoding& e) {
        return static_cast<size_t>(std::find(all.begin(), all.end(), e) - all.begin());
      };
      return costs[index(from) * known + index(to)];
    };
    fixture_->problem.launch_penalty = 0.125 * double(pick(3));
  }

  // Variants err by 0, 1, 2 or 3, a cover may err by 3.
  void limit_errors() {
    for (CandidateCosts& costs : fixture_->problem.candidates)
      for (VariantCost& variant : costs.variants) variant.error = double(pick(4));
    fixture_->problem.max_error = 3;
  }

  Fixture& fixture() { return *fixture_; }
  const std::string& text() const { return text_; }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  std::vector<std::string> layouts(size_t n) {
    std::vector<std::string> result;
    for (size_t i = 0; i < n; ++i) result.push_back(encodings_[pick(encodings_.size())]);
    return result;
  }

  void add_candidates(bool several_exits) {
    const DataflowGraph& graph = fixture_->g.graph();
    auto add = [&](const IndexSet& inside) {
      SubGraph sub_graph = SubGraph::of(graph, inside);
      if (!sub_graph.is_valid(graph, {0, several_exits ? size_t{0} : size_t{1}, several_exits}))
        return;
      // A view of what it takes is not worth a kernel; the search leaves such candidates out.
      bool pointless = false;
      sub_graph.exit().for_each([&](PostDfsIndex i) {
        while (node_role(graph, i) == NodeRole::kView) i = graph.node(i).inputs[0];
        pointless = pointless || !inside.contains(i);
      });
      if (pointless) return;
      size_t variants = 1 + pick(2);
      for (size_t v = 0; v < variants; ++v)
        fixture_->add(pick(2) ? "t" : "u", inside,
                      double(inside.size()) * 0.5 + 0.25 * double(pick(10)),
                      layouts(sub_graph.input().size()), layouts(2 * inside.size()));
    };
    for (PostDfsIndex i = 0; i < graph.size(); ++i)
      if (node_role(graph, i) == NodeRole::kKernel) add(IndexSet({i}));
    for (size_t tries = 0; tries < 30 && fixture_->candidates.size() < 14; ++tries) {
      IndexSet inside;
      for (PostDfsIndex i = 0; i < graph.size(); ++i) {
        NodeRole role = node_role(graph, i);
        if (role != NodeRole::kConstant && role != NodeRole::kVariable &&
            role != NodeRole::kTuple && !device_placement(graph.node(i).expr) && pick(3) == 0)
          inside.insert(i);
      }
      if (inside.size() >= 2 && inside.size() <= 4) add(inside);
    }
  }

  std::mt19937 random_;
  const std::vector<std::string> encodings_;
  std::unique_ptr<Fixture> fixture_;
  std::string text_;
};

// Costs are multiples of an eighth, so sums are exact in any order.
void compare_with_oracle(bool several_exits, size_t wanted,
                         const std::vector<std::string>& encodings = kLayouts,
                         bool at_caller = false) {
  size_t found = 0, refused = 0, proven = 0, converting = 0, several = 0, beat_greedy = 0,
         large = 0;
  for (unsigned seed = 0; found < wanted; ++seed) {
    ASSERT_LT(seed, 4 * wanted);
    RandomProblem random(seed, several_exits, encodings, at_caller);
    Fixture& f = random.fixture();
    if (f.operators() > 12) continue;
    Oracle oracle(f.problem);
    double expected = oracle.best();
    Result<SearchResult> result = search_covers(f.problem);
    ASSERT_EQ(result.ok(), expected < kInfinity) << "seed " << seed << " " << random.text();
    if (!result.ok()) {
      ++refused;
      continue;
    }
    ++found;
    proven += result->exact;
    EXPECT_EQ(result->covers[0].seconds, expected)
        << "seed " << seed << " " << random.text() << "\n"
        << f.text(result->covers[0]) << "\n"
        << f.text(Cover{oracle.best_kernels(), {}, 0});
    EXPECT_LE(result->lower_bound, expected + 1e-9);
    for (const Cover& cover : result->covers) check_cover(f, cover, !at_caller);
    const Cover& best = result->covers[0];
    converting += !best.conversions.empty();
    several += std::any_of(best.kernels.begin(), best.kernels.end(), [&](const Cover::Kernel& k) {
      return f.problem.candidates[k.candidate].candidate->sub_graph.exit().size() > 1;
    });
    beat_greedy += expected < oracle.greedy();
    large += f.operators() >= 10;
    if (::testing::Test::HasFailure()) return;
  }
  // The set is worth something: conversions, several exits and more than greed are needed.
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(proven, found);
  EXPECT_GE(10 * converting, 3 * found);
  EXPECT_GE(10 * several, several_exits ? 2 * found : 0);
  EXPECT_GE(10 * beat_greedy, 3 * found);
  EXPECT_GE(10 * large, found);
  ::testing::Test::RecordProperty("converting", static_cast<int>(converting));
  ::testing::Test::RecordProperty("several_exits", static_cast<int>(several));
  ::testing::Test::RecordProperty("beat_greedy", static_cast<int>(beat_greedy));
  ::testing::Test::RecordProperty("ten_operators", static_cast<int>(large));
}

TEST(Search, IsTheSameEveryTime) {
  RandomProblem random(5, true);
  SearchResult first = *search_covers(random.fixture().problem);
  SearchResult second = *search_covers(random.fixture().problem);
  ASSERT_EQ(first.covers.size(), second.covers.size());
  for (size_t c = 0; c < first.covers.size(); ++c)
    EXPECT_EQ(first.covers[c].kernels, second.covers[c].kernels);
  EXPECT_EQ(first.counts.branches, second.counts.branches);
}

TEST(Search, EqualsBruteForceWithinErrors) {
  constexpr size_t kWanted = 200;
  size_t found = 0, refused = 0, limited = 0;
  for (unsigned seed = 0; found < kWanted; ++seed) {
    ASSERT_LT(seed, 8 * kWanted);
    RandomProblem random(seed, true);
    Fixture& f = random.fixture();
    if (f.operators() > 12) continue;
    const double free = Oracle(f.problem).best();
    random.limit_errors();
    const double expected = Oracle(f.problem).best();
    const Result<SearchResult> result = search_covers(f.problem);
    ASSERT_EQ(result.ok(), expected < kInfinity) << "seed " << seed << " " << random.text();
    refused += free < kInfinity && !result.ok();
    if (!result.ok()) continue;
    ++found;
    limited += free < expected;
    ASSERT_EQ(result->covers[0].seconds, expected) << "seed " << seed << " " << random.text();
    EXPECT_TRUE(result->exact);
    for (const Cover& cover : result->covers) {
      check_cover(f, cover);
      double squares = 0;
      for (const Cover::Kernel& kernel : cover.kernels) {
        const VariantCost& used = f.problem.candidates[kernel.candidate].variants[kernel.variant];
        squares += used.error * used.error;
      }
      EXPECT_LE(squares, 9);
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GE(10 * limited, 3 * found) << "the limit matters";
}

TEST(Search, EqualsBruteForceWithOneExit) { compare_with_oracle(false, 200); }
TEST(Search, EqualsBruteForceWithSeveralExits) { compare_with_oracle(true, 500); }
TEST(Search, EqualsBruteForceOverDevicesAndScopes) { compare_with_oracle(true, 300, kPlaces); }
TEST(Search, EqualsBruteForceWhereTheCallerHasTensorsOnADevice) {
  compare_with_oracle(true, 200, kPlaces, true);
}

}  // namespace
}  // namespace collage
