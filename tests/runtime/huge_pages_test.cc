#include "runtime/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace collage {
namespace {

TEST(HugePages, BlocksAreAlignedAndDoNotOverlap) {
  std::vector<std::shared_ptr<void>> blocks;
  std::vector<size_t> sizes = {
      0, 1, 63, 64, 65, 5000, size_t{3} << 20, size_t{5} << 20, 100, size_t{9} << 20};
  for (size_t repeat = 0; repeat < 3; ++repeat)
    for (size_t bytes : sizes) {
      Result<std::shared_ptr<void>> block = allocate_on_huge_pages(bytes);
      ASSERT_TRUE(block.ok()) << block.status().to_string();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block->get()) % 64, 0U);
      std::memset(block->get(), static_cast<int>(blocks.size()), bytes);
      blocks.push_back(*block);
    }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].get());
    for (size_t b = 0; b < sizes[i % sizes.size()]; ++b) ASSERT_EQ(bytes[b], i) << "block " << i;
  }
}

TEST(HugePages, ABlockKeepsItsMemoryWhileItsNeighboursGo) {
  std::shared_ptr<void> first = *allocate_on_huge_pages(1000);
  std::memset(first.get(), 7, 1000);
  for (int i = 0; i < 100; ++i)
    std::memset(allocate_on_huge_pages(size_t{1} << 20)->get(), 9, 1 << 20);
  EXPECT_EQ(static_cast<unsigned char*>(first.get())[999], 7);
}

// More than the machine has, less than what can be mapped: the system promises it where nothing is
// reserved, and ends who uses it.
TEST(HugePages, WhatTheSystemCannotGiveIsAnError) {
  for (const int bits : {44, 60}) {
    const Result<std::shared_ptr<void>> block = allocate_on_huge_pages(size_t{1} << bits);
    ASSERT_FALSE(block.ok()) << bits;
    EXPECT_EQ(block.status().code(), ErrorCode::kUnavailable);
    EXPECT_NE(block.status().to_string().find("bytes, where "), std::string::npos)
        << block.status().to_string();
  }
}

}  // namespace
}  // namespace collage
