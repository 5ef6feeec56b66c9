// What the search chooses, on graphs of a few operators.
#include <gmock/gmock.h>

#include "search/fixture.h"
#include "search/search.h"

namespace collage {
namespace {

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
  ASSERT_EQ(texts.at(0), "t: a | t: b | t: d");
  // The others cost the same.
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre("t: a | t: b | t: d", "u: a | t: b | t: d",
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

TEST(Search, AViewSharesTheMemoryOfWhateverDevice) {
  Fixture f("x; a = conv(x, c1); b = reshape(a); d = relu(b); return d");
  f.add("gpu", {"a"}, 4, {"@gpu"}, {"@gpu"});
  f.add("gpu", {"d"}, 1, {"@gpu"}, {"@gpu"});
  SearchResult result = *search_covers(f.problem);
  EXPECT_EQ(f.text(result.covers[0]),
            "gpu: a | gpu: d | x plain>plain on gpu:0@0 | d plain on gpu:0>plain@2");
}

// A chain of four that the device computes faster, but for the one in the middle.
TEST(Search, MovesToTheDeviceAsTransfersGetCheaper) {
  Fixture f("x; a = conv(x, c1); b = relu(a); d = conv(b, c2); e = conv(d, c3); return e");
  for (const char* node : {"a", "b", "d", "e"}) {
    const double on_gpu = std::string(node) == "b" ? 5.25 : 1;
    f.add("host", {node}, std::string(node) == "b" ? 1 : 4);
    f.add("gpu", {node}, on_gpu, {"@gpu"}, {"@gpu"});
    f.add("gpu", {node}, on_gpu - 0.5, {"@gpu/scratch"}, {"@gpu/scratch"});
  }
  double transfer = 0;
  f.problem.conversion_cost = [&](const TensorType&, const Encoding& from, const Encoding& to) {
    if (from.device.device == to.device.device) return 0.125;
    const bool scratch = !from.device.memory_scope.empty() || !to.device.memory_scope.empty();
    return scratch ? kInfinity : transfer;
  };
  const auto placed = [&](double seconds) {
    transfer = seconds;
    const SearchResult result = *search_covers(f.problem);
    EXPECT_TRUE(result.exact);
    check_cover(f, result.covers[0]);
    std::string text;
    for (const Cover::Kernel& kernel : result.covers[0].kernels)
      text += (text.empty() ? "" : " ") +
              f.problem.candidates[kernel.candidate].candidate->spec->target.kind;
    return text;
  };
  EXPECT_EQ(placed(5), "host host host host");
  EXPECT_EQ(placed(2.5), "host host gpu gpu");
  EXPECT_EQ(placed(0.5), "gpu host gpu gpu");
  // Leaving the device costs more than to stay for the slow one.
  f.problem.launch_penalty = 0;
  for (CandidateCosts& costs : f.problem.candidates)
    for (VariantCost& variant : costs.variants)
      if (costs.candidate->spec->target.kind == "gpu")
        variant.seconds = std::min(variant.seconds, 1.0);
  EXPECT_EQ(placed(0.25), "gpu gpu gpu gpu");
}

// What the caller has on the device costs no transfer there, and one to the host; and so do
// results.
TEST(Search, StaysWhereTheCallerHasTensors) {
  register_placements();
  const auto cheapest = [](const std::string& text, double transfer, double on_gpu = 1) {
    Fixture f(text);
    for (const char* node : {"a", "b"}) {
      f.add("host", {node}, 2);
      f.add("gpu", {node}, on_gpu, {"@gpu"}, {"@gpu"});
    }
    f.problem.conversion_cost = [&](const TensorType&, const Encoding&, const Encoding&) {
      return transfer;
    };
    const SearchResult result = *search_covers(f.problem);
    EXPECT_TRUE(result.exact);
    return fmt::format("{} = {}", f.text(result.covers[0]), result.covers[0].seconds);
  };
  // Two transfers cost more than the device gains.
  EXPECT_EQ(cheapest("x; a = conv(x, c1); b = relu(a); return b", 1.25), "host: a | host: b = 4");
  EXPECT_EQ(cheapest("x; y = on_gpu(x); a = conv(y, c1); b = relu(a); return b", 1.25),
            "gpu: a | gpu: b | x plain>plain on gpu:0@0 | b plain on gpu:0>plain@2 = 3.25");
  EXPECT_EQ(cheapest("x; a = conv(x, c1); b = relu(a); r = for_gpu(b); return r", 1.25),
            "gpu: a | gpu: b | x plain>plain on gpu:0@0 | b plain on gpu:0>plain@2 = 3.25");
  EXPECT_EQ(cheapest("x; y = on_gpu(x); a = conv(y, c1); b = relu(a); r = for_gpu(b); return r", 9),
            "gpu: a | gpu: b | x plain>plain on gpu:0@0 | b plain on gpu:0>plain@2 = 2");
  // Where the host is to compute, a run copies them.
  EXPECT_EQ(
      cheapest("x; y = on_gpu(x); a = conv(y, c1); b = relu(a); r = for_gpu(b); return r", 1.25, 9),
      "host: a | host: b = 6.5");
}

// A device that no target is on is none.
TEST(Search, ReachesTheHostWhereNoTargetIsAtTheCallers) {
  register_placements();
  Fixture f("x; y = on_gpu(x); a = conv(y, c1); r = for_gpu(a); return r");
  f.add("host", {"a"}, 2);
  f.problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) {
    return kInfinity;
  };
  EXPECT_EQ(f.text(search_covers(f.problem)->covers[0]), "host: a");
}

}  // namespace
}  // namespace collage
