#include "runtime/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace collage {
namespace {

TEST(Layout, TagsRoundTrip) {
  for (const char* tag :
       {"acdb", "aBcd16b", "ABcd16b16a", "acdeb", "ba", "aBcde8b", "ABcd4b16a4b"}) {
    Result<Layout> layout = Layout::parse(tag);
    ASSERT_TRUE(layout.ok()) << layout.status().to_string();
    EXPECT_EQ(layout->to_string(), tag);
  }
  EXPECT_TRUE(Layout::parse("abcd")->is_plain());
  EXPECT_TRUE(Layout::parse("")->is_plain());
  EXPECT_EQ(Layout().tag(3), "abc");
  EXPECT_EQ(Layout::channels_blocked(4, 16).to_string(), "aBcd16b");
  EXPECT_EQ(Layout::channels_last(4).to_string(), "acdb");
  EXPECT_TRUE(Layout::channels_last(2).is_plain());
}

TEST(Layout, MalformedTagsAreRefused) {
  for (const char* tag : {"aBcd", "abcd16b", "aBcd16", "abd", "aab", "aBcd16B", "a16a", "aBcd0b"})
    EXPECT_FALSE(Layout::parse(tag).ok()) << tag;
}

TEST(Layout, PhysicalShapesArePadded) {
  EXPECT_EQ(Layout::parse("aBcd16b")->physical_shape({1, 20, 7, 5}), (Shape{1, 2, 7, 5, 16}));
  EXPECT_EQ(Layout::parse("aBcd16b")->physical_shape({1, 32, 7, 5}), (Shape{1, 2, 7, 5, 16}));
  EXPECT_EQ(Layout::parse("acdb")->physical_shape({1, 20, 7, 5}), (Shape{1, 7, 5, 20}));
  EXPECT_EQ(Layout::parse("ABcd16b16a")->physical_shape({17, 3, 2, 2}),
            (Shape{2, 1, 2, 2, 16, 16}));
  EXPECT_EQ(Layout::parse("aBcd16b")->physical_bytes({1, 20, 7, 5}, DType::kFloat32),
            4u * 2 * 7 * 5 * 16);
}

TEST(Layout, OffsetsAreDistinctAndInside) {
  Shape shape{2, 5, 3, 4};
  for (const char* tag : {"abcd", "acdb", "aBcd4b", "ABcd2a4b", "ABcd2b2a2b"}) {
    Layout layout = *Layout::parse(tag);
    std::set<int64_t> seen;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t c = 0; c < 5; ++c)
        for (int64_t h = 0; h < 3; ++h)
          for (int64_t w = 0; w < 4; ++w) seen.insert(layout.offset(shape, {n, c, h, w}));
    EXPECT_EQ(seen.size(), 2u * 5 * 3 * 4) << tag;
    EXPECT_LT(*seen.rbegin(), num_elements(layout.physical_shape(shape))) << tag;
  }
  EXPECT_EQ(Layout::parse("acdb")->offset(shape, {0, 1, 0, 0}), 1);
  EXPECT_EQ(Layout::parse("aBcd4b")->offset(shape, {0, 4, 0, 1}), 3 * 4 * 4 + 4);
  // Channel 6 of blocks of 4 and 2: block 0, in it pair 3 and the first of the pair.
  EXPECT_EQ(Layout::parse("aB4b2b")->offset({1, 16}, {0, 6}), 6);
  EXPECT_EQ(Layout::parse("AB4b3a2b")->offset({3, 16}, {1, 13}), 1 * 24 + 2 * 6 + 1 * 2 + 1);
}

}  // namespace
}  // namespace collage
