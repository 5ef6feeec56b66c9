// Covers of one backend alone, or of mostly one.
#include <gmock/gmock.h>

#include "search/fixture.h"
#include "search/search.h"

namespace collage {
namespace {

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

}  // namespace
}  // namespace collage
