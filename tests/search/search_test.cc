#include "search/search.h"

#include <gmock/gmock.h>

#include <deque>
#include <random>

#include "partition/tiny_graph.h"
#include "search/oracle.h"
#include "search/synthetic.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Encoding encoding(const std::string& layout) {
  return {DType::kFloat32, layout.empty() ? Layout() : *Layout::parse(layout), VirtualDevice()};
}

// A problem being put together: candidates by the names of their nodes.
class Fixture {
 public:
  explicit Fixture(const std::string& text) : g(text) {
    problem.graph = &g.graph();
    problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) {
      return 1.0;
    };
  }
  // Layouts by tag, "" plain; one for all inputs and one for all outputs.
  void add(const std::string& target, const IndexSet& inside, double seconds,
           std::vector<std::string> inputs = {}, std::vector<std::string> outputs = {}) {
    SubGraph sub_graph = SubGraph::of(g.graph(), inside);
    size_t leaves = 0;
    sub_graph.exit().for_each(
        [&](PostDfsIndex i) { leaves += g.graph().node(i).expr->type().leaves().size(); });
    inputs.resize(sub_graph.input().size());
    outputs.resize(leaves);
    Variant variant{"v", {}, {}};
    for (const std::string& tag : inputs) variant.inputs.push_back(encoding(tag));
    for (const std::string& tag : outputs) variant.outputs.push_back(encoding(tag));
    for (CandidateCosts& known : problem.candidates)
      if (known.candidate->sub_graph.inside() == inside &&
          known.candidate->spec->target.to_string() == target) {
        known.variants.push_back({variant, seconds});
        return;
      }
    auto spec = std::make_shared<PartitionSpec>(
        PartitionSpec{target, nullptr, Target::parse(target).value()});
    candidates.push_back({"test", std::move(sub_graph), spec});
    problem.candidates.push_back({&candidates.back(), {{variant, seconds}}});
  }
  void add(const std::string& target, const std::vector<std::string>& inside, double seconds,
           std::vector<std::string> inputs = {}, std::vector<std::string> outputs = {}) {
    add(target, g.set(inside), seconds, std::move(inputs), std::move(outputs));
  }
  // "target: a b | target: c", in order.
  std::string text(const Cover& cover) const {
    std::string result;
    for (size_t k = 0; k < cover.kernels.size(); ++k) {
      const CandidatePartition& candidate =
          *problem.candidates[cover.kernels[k].candidate].candidate;
      result += (k ? " | " : "") + candidate.spec->target.to_string() + ": " +
                g.names(candidate.sub_graph.inside());
    }
    for (const ChosenConversion& conversion : cover.conversions)
      result += " | " + g.names(IndexSet({conversion.tensor.node})) + " " +
                conversion.from.layout.to_string() + ">" + conversion.to.layout.to_string() + "@" +
                std::to_string(conversion.before);
    return result;
  }

  size_t operators() const {
    size_t count = 0;
    for (const DataflowGraph::Node& node : g.graph().nodes())
      count += node_role(node.expr) == NodeRole::kKernel;
    return count;
  }

  TinyGraph g;
  std::deque<CandidatePartition> candidates;
  SearchProblem problem;
};

TEST(Search, PicksTheCheaperOfFusedAndSeparate) {
  Fixture f("x; a = conv(x, c1); b = relu(a); return b");
  f.add("t", {"a"}, 5);
  f.add("t", {"b"}, 2);
  f.add("u", {"a", "b"}, 6);
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "u: a b");
  EXPECT_DOUBLE_EQ(result.covers[0].seconds, 6);
  EXPECT_TRUE(result.exact);
  EXPECT_DOUBLE_EQ(result.lower_bound, 6);
}

TEST(Search, TheLaunchPenaltyCountsForEachKernelAndConversion) {
  Fixture f("x; a = conv(x, c1); b = relu(a); return b");
  f.add("t", {"a"}, 5, {""}, {"A4a"});
  f.add("t", {"b"}, 0.5);
  f.add("u", {"a", "b"}, 6.6);
  f.problem.launch_penalty = 0.25;
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "u: a b");
  f.problem.launch_penalty = 0;
  result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "t: a | t: b | a A4a>plain@1");
  EXPECT_DOUBLE_EQ(result.covers[0].seconds, 6.5);
}

TEST(Search, KeepsALayoutAcrossAChainAndReturnsPlainResults) {
  Fixture f("x; a = conv(x, c1); b = relu(a); d = conv(b, c2); return d");
  for (const char* node : {"a", "b", "d"}) {
    f.add("t", {node}, 4);
    f.add("t", {node}, 2, {"A4a"}, {"A4a"});
  }
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "t: a | t: b | t: d | x plain>A4a@0 | d A4a>plain@3");
  EXPECT_DOUBLE_EQ(result.covers[0].seconds, 8);
}

TEST(Search, OneConversionServesAllConsumers) {
  Fixture f(
      "x; a = conv(x, c1); b = conv(x, c2); d = conv(x, c3); e = add(a, b); return add(e, d)");
  for (const char* node : {"a", "b", "d"}) {
    f.add("t", {node}, 4);
    f.add("t", {node}, 3.5, {"A4a"}, {""});
  }
  f.add("t", {"e"}, 1);
  f.add("t", {"result"}, 1);
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(result.covers[0].conversions.size(), 1u);
  EXPECT_DOUBLE_EQ(result.covers[0].seconds, 3 * 3.5 + 1 + 2);
}

TEST(Search, AViewReadsAndGivesPlainMemory) {
  Fixture f("x; a = conv(x, c1); r = reshape(a); b = conv(r, c2); return b");
  f.add("t", {"a"}, 2, {""}, {"A4a"});
  f.add("t", {"b"}, 2, {"A2a"}, {""});
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "t: a | t: b | a A4a>plain@1 | r plain>A2a@1");
}

TEST(Search, ACandidateMayHoldTheView) {
  Fixture f("x; a = conv(x, c1); r = reshape(a); b = conv(r, c2); return b");
  f.add("t", {"a"}, 2);
  f.add("t", {"b"}, 2);
  f.add("u", {"a", "r", "b"}, 3);
  EXPECT_EQ(f.text(search_covers(f.problem)->covers[0]), "u: a r b");
}

TEST(Search, TupleResultsAreTakenApartByTheHost) {
  Fixture f(
      "x; s = split(x); p = s.0; q = s.1; a = relu(p); t = tuple(q, a); k = concat(t); "
      "return k");
  f.add("t", {"s"}, 1, {""}, {"A4a", ""});
  f.add("t", {"a"}, 1);
  f.add("t", {"t", "k"}, 1);
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]), "t: s | t: a | t: t k | s A4a>plain@1");
  EXPECT_EQ(result.covers[0].conversions[0].tensor.leaf, 0u);
}

TEST(Search, KernelsThatWaitForOneAnotherAreNotChosen) {
  // Each of the two cheap candidates is convex, but together they deadlock.
  Fixture f("x; y; a = relu(x); b = relu(y); d = exp(b); e = exp(a); return tuple(d, e)");
  f.add("u", {"a", "d"}, 1);
  f.add("u", {"b", "e"}, 1);
  for (const char* node : {"a", "b", "d", "e"}) f.add("t", {node}, 3);
  SearchResult result = *search_covers(f.problem);
  EXPECT_DOUBLE_EQ(result.covers[0].seconds, 7);
  EXPECT_TRUE(result.exact);
}

TEST(Search, ACandidateWithSeveralExitsRunsWhenItsInputsAreThere) {
  // {a, d} gives b's input and takes b's result: never possible. {a, e} gives d its input.
  Fixture f("x; a = relu(x); b = sort(a); e = exp(x); d = add(b, e); return d");
  f.add("u", {"a", "e"}, 1);
  for (const char* node : {"a", "b", "d", "e"}) f.add("t", {node}, 3);
  EXPECT_EQ(f.text(search_covers(f.problem)->covers[0]), "u: a e | t: b | t: d");
}

TEST(Search, GivesSeveralCoversThatDifferInKernelsOrTargets) {
  Fixture f("x; a = conv(x, c1); b = relu(a); d = conv(b, c2); return d");
  for (const char* node : {"a", "b", "d"}) {
    f.add("t", {node}, 4);
    f.add("t", {node}, 4.01, {"A4a"}, {"A4a"});  // another layout is not another cover
    f.add("u", {node}, 4.1);
  }
  f.add("t", {"a", "b"}, 8.3);
  SearchOptions options;
  options.top_k = 4;
  SearchResult result = *search_covers(f.problem, options);
  std::vector<std::string> texts;
  for (const Cover& cover : result.covers) texts.push_back(f.text(cover));
  EXPECT_THAT(texts, ::testing::ElementsAre("t: a | t: b | t: d", "u: a | t: b | t: d",
                                            "t: a | u: b | t: d", "t: a | t: b | u: d"));
  options.top_k = 1;
  EXPECT_EQ(search_covers(f.problem, options)->covers.size(), 1u);
}

TEST(Search, OffersACoverWithoutEachTarget) {
  Fixture f("x; a = conv(x, c1); b = relu(a); d = conv(b, c2); return d");
  for (const char* node : {"a", "b", "d"}) f.add("t", {node}, 4);
  for (const char* node : {"a", "b", "d"}) f.add("u", {node}, *node == 'b' ? 3.9 : 4.2);
  SearchOptions options;
  options.top_k = 3;
  SearchResult result = *search_covers(f.problem, options);
  std::vector<std::string> texts;
  for (const Cover& cover : result.covers) texts.push_back(f.text(cover));
  EXPECT_THAT(texts, ::testing::ElementsAre("t: a | u: b | t: d", "t: a | t: b | t: d",
                                            "u: a | u: b | u: d"));
}

TEST(Search, SaysWhatCannotBeCovered) {
  Fixture f("x; a = conv(x, c1); b = sort(a); return b");
  f.add("t", {"a"}, 1);
  Result<SearchResult> result = search_covers(f.problem);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(result.status().message(), ::testing::HasSubstr("sort"));
  // Covered, but no way between the two encodings.
  f.add("t", {"b"}, 1, {"A4a"}, {""});
  f.problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) {
    return kInfinity;
  };
  EXPECT_FALSE(search_covers(f.problem).ok());
}

TEST(SingleBackend, UsesTheHostOnlyWhereTheTargetCannot) {
  Fixture f("x; a = conv(x, c1); b = sort(a); d = relu(b); return d");
  f.add("t", {"a"}, 5);
  f.add("t", {"d"}, 5);
  for (const char* node : {"a", "b", "d"}) f.add("host", {node}, 1);
  f.add("u", {"b"}, 0.1);
  SearchResult result = *single_backend_cover(f.problem, {"t", {}, {}}, {"host", {}, {}});
  EXPECT_EQ(f.text(result.covers[0]), "t: a | host: b | t: d");
}

TEST(MostlyOneBackend, LeavesTheRestToAnybody) {
  Fixture f("x; a = conv(x, c1); b = sort(a); d = relu(b); return d");
  f.add("t", {"a"}, 5);
  f.add("t", {"d"}, 5);
  for (const char* node : {"a", "b", "d"}) f.add("host", {node}, 1);
  f.add("u", {"b"}, 0.1);
  f.add("u", {"b", "d"}, 0.1);
  EXPECT_EQ(f.text(mostly_one_backend_cover(f.problem, {"t", {}, {}})->covers[0]),
            "t: a | u: b | t: d");
  EXPECT_FALSE(
      mostly_one_backend_cover(Fixture("x; a = conv(x, c1); return a").problem, {"t", {}, {}})
          .ok());
}

TEST(SingleBackend, TellsTargetsOfOneKindApart) {
  Fixture f("x; a = conv(x, c1); b = sort(a); d = relu(b); return d");
  for (const char* node : {"a", "b", "d"}) f.add("host", {node}, 9);
  f.add("t", {"a"}, 5);
  f.add("t -fast=1", {"a"}, 4);
  f.add("t -device=gpu:1", {"a"}, 3);
  f.add("t -device=gpu:1", {"d"}, 3);
  const Target plain{"t", {}, {}}, fast{"t", {{"fast", "1"}}, {}}, host{"host", {}, {}};
  const Target device = Target::parse("t -device=gpu:1").value();
  const auto only = [&](const Target& target) {
    return f.text(single_backend_cover(f.problem, target, host)->covers[0]);
  };
  EXPECT_EQ(only(plain), "t: a | host: b | host: d");
  EXPECT_EQ(only(fast), "t -fast=1: a | host: b | host: d");
  EXPECT_EQ(only(device), "t -device=gpu:1: a | host: b | t -device=gpu:1: d");
  // Covers that differ in nothing but a target's options are two covers.
  const SearchResult found = search_covers(f.problem).value();
  std::vector<std::string> covers;
  for (const Cover& cover : found.covers) covers.push_back(f.text(cover));
  EXPECT_THAT(covers, ::testing::IsSupersetOf({"t -device=gpu:1: a | host: b | t -device=gpu:1: d",
                                               "t -fast=1: a | host: b | t -device=gpu:1: d"}));
}

TEST(SingleBackend, FallsBackWhereTheTargetsCandidatesDoNotFitTogether) {
  Fixture f("x; a = conv(x, c1); b = relu(a); d = exp(b); return d");
  f.add("t", {"a", "b"}, 1);
  f.add("t", {"b", "d"}, 1);
  for (const char* node : {"a", "b", "d"}) f.add("host", {node}, 2);
  EXPECT_DOUBLE_EQ(
      single_backend_cover(f.problem, {"t", {}, {}}, {"host", {}, {}})->covers[0].seconds, 3);
  EXPECT_FALSE(single_backend_cover(f.problem, {"nobody", {}, {}}, {"none", {}, {}}).ok());
}

// A random problem on a random graph: candidates of any shape that is convex, with one exit or
// several, in several layouts.
class RandomProblem {
 public:
  RandomProblem(unsigned seed, bool several_exits) : random_(seed) {
    static const std::vector<std::string> kOps = {"relu", "add", "conv", "reshape", "split", "add"};
    size_t count = 3 + pick(12);
    std::string text = "x; y";
    std::vector<std::string> tensors = {"x", "y"};
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
    text += "; return tuple(" + tensors.back() + ", " + tensors[tensors.size() - 2];
    for (const std::string& tensor : unread) text += ", " + tensor;
    text += ")";
    fixture_ = std::make_unique<Fixture>(text);
    text_ = text;
    add_candidates(several_exits);
    std::vector<double> costs(9);
    for (double& cost : costs) cost = pick(8) == 0 ? kInfinity : 0.25 * double(1 + pick(12));
    std::vector<Encoding> all = {encoding(""), encoding("A2a"), encoding("A4a")};
    fixture_->problem.conversion_cost = [costs, all](const TensorType&, const Encoding& from,
                                                     const Encoding& to) {
      auto index = [&](const Encoding& e) {
        return static_cast<size_t>(std::find(all.begin(), all.end(), e) - all.begin());
      };
      return costs[index(from) * 3 + index(to)];
    };
    fixture_->problem.launch_penalty = 0.125 * double(pick(3));
  }

  Fixture& fixture() { return *fixture_; }
  const std::string& text() const { return text_; }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  std::vector<std::string> layouts(size_t n) {
    static const std::vector<std::string> kTags = {"", "A2a", "A4a"};
    std::vector<std::string> result;
    for (size_t i = 0; i < n; ++i) result.push_back(kTags[pick(3)]);
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
            role != NodeRole::kTuple && pick(3) == 0)
          inside.insert(i);
      }
      if (inside.size() >= 2 && inside.size() <= 4) add(inside);
    }
  }

  std::mt19937 random_;
  std::unique_ptr<Fixture> fixture_;
  std::string text_;
};

// What a cover says it does must be possible and cost what it says.
void check_cover(const Fixture& f, const Cover& cover) {
  double seconds = 0;
  std::set<std::pair<TensorRef, Encoding>> exist;
  const DataflowGraph& graph = f.g.graph();
  for (const DataflowGraph::Node& node : graph.nodes())
    if (node_role(node.expr) == NodeRole::kVariable) exist.insert({{node.index, 0}, encoding("")});
  auto exists = [&](TensorRef tensor, const Encoding& wanted) {
    if (exist.count({tensor, wanted})) return true;
    if (!(wanted == encoding(""))) return false;
    // Plain memory of what it is a view of, or of a view of it.
    auto root = [&](TensorRef t) {
      while (node_role(graph, t.node) == NodeRole::kView)
        t = tensor_of(graph, graph.node(t.node).inputs[0]);
      return t;
    };
    return std::any_of(exist.begin(), exist.end(), [&](const auto& item) {
      return item.second == wanted && root(item.first) == root(tensor);
    });
  };
  size_t next = 0;
  for (size_t k = 0; k <= cover.kernels.size(); ++k) {
    for (; next < cover.conversions.size() && cover.conversions[next].before == k; ++next) {
      const ChosenConversion& conversion = cover.conversions[next];
      ASSERT_TRUE(exists(conversion.tensor, conversion.from));
      exist.insert({conversion.tensor, conversion.to});
      seconds += conversion.seconds + f.problem.launch_penalty;
    }
    if (k == cover.kernels.size()) break;
    const CandidateCosts& costs = f.problem.candidates[cover.kernels[k].candidate];
    const VariantCost& variant = costs.variants[cover.kernels[k].variant];
    seconds += variant.seconds + f.problem.launch_penalty;
    size_t at = 0;
    costs.candidate->sub_graph.input().for_each([&](PostDfsIndex i) {
      EXPECT_TRUE(exists(tensor_of(graph, i), variant.variant.inputs[at++]));
    });
    at = 0;
    costs.candidate->sub_graph.exit().for_each([&](PostDfsIndex i) {
      for (size_t leaf = 0; leaf < graph.node(i).expr->type().leaves().size(); ++leaf)
        exist.insert(
            {graph.node(i).expr->type().is_tensor() ? tensor_of(graph, i) : TensorRef{i, leaf},
             variant.variant.outputs[at++]});
    });
  }
  EXPECT_EQ(next, cover.conversions.size());
  EXPECT_NEAR(seconds, cover.seconds, 1e-9);
}

// Costs are multiples of an eighth, so sums are exact in any order.
void compare_with_oracle(bool several_exits, size_t wanted) {
  size_t found = 0, refused = 0, converting = 0, several = 0, beat_greedy = 0, large = 0;
  for (unsigned seed = 0; found < wanted; ++seed) {
    ASSERT_LT(seed, 4 * wanted);
    RandomProblem random(seed, several_exits);
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
    EXPECT_TRUE(result->exact) << "seed " << seed;
    EXPECT_EQ(result->covers[0].seconds, expected)
        << "seed " << seed << " " << random.text() << "\n"
        << f.text(result->covers[0]) << "\n"
        << f.text(Cover{oracle.best_kernels(), {}, 0});
    EXPECT_LE(result->lower_bound, expected + 1e-9);
    for (const Cover& cover : result->covers) check_cover(f, cover);
    const Cover& best = result->covers[0];
    converting += !best.conversions.empty();
    several += std::any_of(best.kernels.begin(), best.kernels.end(), [&](const ChosenKernel& k) {
      return f.problem.candidates[k.candidate].candidate->sub_graph.exit().size() > 1;
    });
    beat_greedy += expected < oracle.greedy();
    large += f.operators() >= 10;
    if (::testing::Test::HasFailure()) return;
  }
  // The set is worth something: conversions, several exits and more than greed are needed.
  EXPECT_GT(refused, 0u);
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
  EXPECT_EQ(first.states, second.states);
}

TEST(Search, EqualsBruteForceWithOneExit) { compare_with_oracle(false, 200); }
TEST(Search, EqualsBruteForceWithSeveralExits) { compare_with_oracle(true, 500); }

// Sizes and shapes of real models: the search must end with a cover, a bound close to it, and
// within its budget of states.
TEST(Search, ScalesToLargeModels) {
  for (const std::string& text : {SyntheticProblem::nasnet(8), SyntheticProblem::nasrnn(3)}) {
    SyntheticProblem synthetic(text, 2);
    SearchResult result = *search_covers(synthetic.problem());
    EXPECT_LE(result.covers[0].seconds, 1.002 * result.lower_bound);
    EXPECT_LT(result.states, 1'000'000u);
    EXPECT_GE(result.covers.size(), 4u);
    size_t covered = 0;
    for (const ChosenKernel& kernel : result.covers[0].kernels)
      synthetic.problem().candidates[kernel.candidate].candidate->sub_graph.inside().for_each(
          [&](PostDfsIndex i) { covered += node_role(synthetic.graph(), i) == NodeRole::kKernel; });
    size_t kernels = 0;
    for (const DataflowGraph::Node& node : synthetic.graph().nodes())
      kernels += node_role(node.expr) == NodeRole::kKernel;
    EXPECT_EQ(covered, kernels);
  }
}

}  // namespace
}  // namespace collage
