#include <collage/progress.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/hash.h"
#include "base/index_set.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/name_supply.h"
#include "base/percent.h"
#include "base/printable.h"
#include "base/regex.h"
#include "base/result.h"
#include "base/statistics.h"
#include "base/time_left.h"

namespace collage {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return bad_model("{} is odd", x);
  return x / 2;
}

Result<int> quarter(int x) {
  int h = TRY(half(x).with_context("first half"));
  return TRY(half(h));
}

TEST(Result, NothingIsAValueOfAnOptional) {
  const Result<std::optional<int>> nothing = std::nullopt, three = 3;
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
  ASSERT_TRUE(three.ok());
  EXPECT_EQ(**three, 3);
}

TEST(Result, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(7).status().to_string(), "first half: 7 is odd");
  EXPECT_EQ(quarter(6).status().to_string(), "3 is odd");
  EXPECT_EQ(quarter(6).status().exit_code(), 3);
}

TEST(Interrupt, IsWhatWasLastSaid) {
  EXPECT_FALSE(interrupted());
  set_interrupted(true);
  EXPECT_TRUE(interrupted());
  set_interrupted(false);
  EXPECT_FALSE(interrupted());
}

TEST(Printable, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("conv1 \xc3\xa4"), "conv1 \xc3\xa4");
  EXPECT_EQ(printable("a\x1b[31mb\tc\n"), "a?[31mb?c?");
  EXPECT_EQ(printable("\xe2\x80\xaetxt \xc2\x9b \xe2\x82\xac"), "?txt ? \xe2\x82\xac");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), "xxxxxxx...");
  EXPECT_EQ(printable("xxxxxx\xc3\xa4yyyyy", 10), "xxxxxx...");
}

TEST(Regex, FindsPartsOfALongText) {
  const Result<Regex> block = Regex::parse("^block[0-9]+/(conv|add)$");
  ASSERT_TRUE(block.ok());
  EXPECT_TRUE(block->found_in("block12/conv"));
  EXPECT_FALSE(block->found_in("block/conv"));
  EXPECT_TRUE(Regex::parse("")->found_in(""));
  // Time and stack do not depend on how the expression branches.
  const std::string text(1 << 20, 'x');
  EXPECT_FALSE(Regex::parse("(.|x)*y")->found_in(text));
  EXPECT_FALSE(Regex::parse("((x+)+)+$")->found_in(text + "y"));
}

TEST(Json, IsNullWhereItIsNoneOrNestsTooDeep) {
  EXPECT_EQ(parse_json("{\"a\": [1, \"]]\"]}")["a"][0], 1);
  for (const char* text : {"", "{", "[1,]", "1e999", "\"\xff\""})
    EXPECT_TRUE(parse_json(text).is_null()) << text;
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(128)).is_array());
  EXPECT_TRUE(parse_json(nested(129)).is_null());
  EXPECT_TRUE(parse_json(nested(1'000'000)).is_null());
  EXPECT_TRUE(parse_json("[\"" + std::string(1000, '[') + "\"]").is_array());
}

TEST(Regex, RefusesWhatIsNone) {
  for (const char* text : {"(", "a{2,1}", "[z-a]", "*", "(?=x)", "\\1", "x{1000}{1000}", "\xff"})
    EXPECT_EQ(Regex::parse(text).status().exit_code(), 2) << text;
  EXPECT_EQ(Regex::parse("a(b").status().to_string(),
            "'a(b' is no regular expression: missing ): a(b");
}

TEST(Statistics, MannWhitneyAgreesWithTables) {
  std::vector<double> low, high, mixed;
  for (int i = 0; i < 20; ++i) {
    low.push_back(i);
    high.push_back(i + 100);
    mixed.push_back(i + (i % 2 == 0 ? 0.5 : -0.5));
  }
  EXPECT_LT(mann_whitney(low, high), 1e-6);
  EXPECT_DOUBLE_EQ(mann_whitney(low, high), mann_whitney(high, low));
  EXPECT_GT(mann_whitney(low, mixed), 0.9);
  EXPECT_EQ(mann_whitney({1, 1, 1}, {1, 1}), 1);
  EXPECT_EQ(mann_whitney({}, {1}), 1);
  // By hand: U = 22, its mean 12.5 and variance 22.92, 0.5 for continuity.
  EXPECT_NEAR(mann_whitney({1, 2, 3, 4, 8}, {5, 6, 7, 9, 10}), 0.0601, 0.0001);
}

TEST(IndexSet, BehavesLikeASetOfIntegers) {
  IndexSet a({1, 3, 64}), b({3, 64, 199});
  EXPECT_EQ((a | b).to_string(), "{1,3,64,199}");
  EXPECT_EQ((a & b).to_string(), "{3,64}");
  EXPECT_EQ((a - b).to_string(), "{1}");
  EXPECT_TRUE((a & b).is_subset_of(b));
  EXPECT_FALSE(a.is_subset_of(b));
  EXPECT_EQ(a.first(), 1u);
  EXPECT_EQ(a.last(), 64u);
  EXPECT_EQ(a.next(4), 64u);
  EXPECT_EQ(a.next(65), IndexSet::kNone);
  EXPECT_EQ(IndexSet().first(), IndexSet::kNone);
}

TEST(IndexSet, EqualityAndHashGoByContent) {
  IndexSet a({2}), b({2, 900});
  b.erase(900);
  EXPECT_TRUE(a == b);
  EXPECT_EQ(a.hash(), b.hash());
  b.insert(900);
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(a < b || b < a);
}

TEST(Hash, Sha256OfKnownText) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(NameSupply, NamesAreFreshAndSafe) {
  NameSupply names;
  EXPECT_EQ(names.fresh("conv"), "conv");
  EXPECT_EQ(names.fresh("conv"), "conv_1");
  EXPECT_EQ(names.fresh("a/b:0"), "a_b_0");
  EXPECT_EQ(names.fresh("0x"), "_0x");
}

TEST(Statistics, PercentilesInterpolate) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({1, 2, 3, 4}), 2.5);
  EXPECT_DOUBLE_EQ(percentile({0, 10}, 0.1), 1);
}

TEST(Statistics, PercentilesOfOneSampleNeverCross) {
  const double value = 9e-8;
  for (size_t count = 1; count < 100; ++count)
    for (int percent = 0; percent <= 100; ++percent)
      EXPECT_EQ(percentile(std::vector<double>(count, value), 0.01 * percent), value) << count;
}

TEST(Percent, HasTwoDigitsOrAllInFrontOfThePoint) {
  for (const auto& [part, text] : std::map<double, std::string>{{0, "0%"},
                                                                {1.234e-4, "0.012%"},
                                                                {0.0123, "1.2%"},
                                                                {0.0999, "10%"},
                                                                {0.5, "50%"},
                                                                {0.999, "100%"},
                                                                {1, "100%"},
                                                                {12.34, "1234%"}})
    EXPECT_EQ(percent_text(part), text);
}

TEST(TimeLeft, RisesByATenthAtMost) {
  TimeLeft left;
  double last = left.tell(10, 10, 128);  // quick pieces first
  EXPECT_DOUBLE_EQ(last, 128);
  for (size_t worked = 11; worked < 60; ++worked) {
    const double elapsed = 10 + 5 * static_cast<double>(worked - 10);
    const double now = left.tell(elapsed, worked, 138 - worked);
    EXPECT_LE(now, 1.1 * last);
    last = now;
  }
  EXPECT_DOUBLE_EQ(last, (10 + 5 * 49.0) / 59 * 79) << "it has come as far as the pieces say";
  EXPECT_DOUBLE_EQ(left.tell(300, 137, 1), 300.0 / 137) << "downwards it follows at once";
}

TEST(Files, WrittenByManyThreadsAreWhole) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("collage_files_at_once" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "x.txt";
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const std::string content(100000, static_cast<char>('a' + t));
      for (int i = 0; i < 10; ++i) {
        failed += !write_file_atomically(path, content).ok();
        const Result<std::string> read = read_file(path);
        failed += !read || read->size() != content.size() ||
                  read->find_first_not_of((*read)[0]) != std::string::npos;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  std::filesystem::remove_all(folder);
}

TEST(Files, PublishedWholeOrNotAtAll) {
  auto folder =
      std::filesystem::temp_directory_path() / ("collage_files_test" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  auto path = folder / "x.txt";
  ASSERT_TRUE(write_file_atomically(path, "hello").ok());
  EXPECT_EQ(*read_file(path), "hello");
  EXPECT_FALSE(write_file_atomically(folder / "missing" / "x.txt", "hello").ok());
  EXPECT_EQ(read_file(folder).status().exit_code(), 3);
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++entries;
  EXPECT_EQ(entries, 1u);  // no temporary file is left
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace collage
