// Equal constants are kept once, as long as somebody keeps them.
#include "runtime/shared_constants.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/block_sum.h"
#include "runtime/huge_pages.h"
#include "runtime/on_threads.h"

namespace collage {
namespace {

constexpr size_t kBytes = kLeastSharedBytes;

// Bytes of its own, each of that value.
SharedBytes block(int value, size_t bytes = kBytes) {
  std::shared_ptr<void> memory = *allocate_on_huge_pages(bytes);
  std::memset(memory.get(), value, bytes);
  return {memory, bytes};
}
Tensor tensor(uint8_t value, Shape shape = {int64_t{kBytes}}) {
  Tensor made = Tensor::empty(DType::kUInt8, std::move(shape));
  std::memset(made.raw(), value, made.bytes());
  return made;
}

TEST(SharedConstants, EqualOnesAreOne) {
  const SharedBytes own = block(1);
  const SharedBytes first = shared_constant(own);
  EXPECT_EQ(first.data, own.data);
  const SharedBytes second = shared_constant(block(1));
  EXPECT_EQ(second.data.get(), first.data.get());
  EXPECT_EQ(second.bytes, kBytes);
}

TEST(SharedConstants, OthersAreNot) {
  const SharedBytes first = shared_constant(block(2));
  const SharedBytes longer = shared_constant(block(2, kBytes + 64));
  EXPECT_NE(longer.data.get(), first.data.get());
  SharedBytes last = block(2);
  static_cast<char*>(const_cast<void*>(last.data.get()))[kBytes - 1] = 3;
  EXPECT_NE(shared_constant(last).data.get(), first.data.get());
}

TEST(SharedConstants, SmallOnesStayApart) {
  const SharedBytes first = shared_constant(block(3, kBytes - 1));
  EXPECT_NE(shared_constant(block(3, kBytes - 1)).data.get(), first.data.get());
}

// What follows a word in its lane makes up for it.
TEST(SharedConstants, EqualSumsDoNotSuffice) {
  constexpr size_t kLanes = 8;
  const auto mixed = [](uint64_t sum, uint64_t word) {
    const uint64_t product = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return product ^ (product >> 32);
  };
  const SharedBytes first = block(0), second = block(0);
  auto* words = static_cast<uint64_t*>(const_cast<void*>(second.data.get()));
  words[0] = 12345;
  words[kLanes] = mixed(1, words[0]) ^ mixed(1, 0);
  ASSERT_EQ(block_sum(first.text()), block_sum(second.text()));
  const SharedBytes kept = shared_constant(first);
  EXPECT_EQ(shared_constant(second).data.get(), second.data.get());
  // And both are known.
  EXPECT_EQ(shared_constant(block(0)).data.get(), first.data.get());
}

TEST(SharedConstants, AreGoneWithWhoKeptThem) {
  {
    Tensor made = shared_constant(tensor(4));
    const Tensor other = shared_constant(tensor(4));
    EXPECT_EQ(other.raw(), made.raw());
    made = Tensor();
    EXPECT_EQ(other.data<uint8_t>()[kBytes - 1], 4);
    EXPECT_EQ(shared_constant(tensor(4)).raw(), other.raw());
  }
  auto held = std::make_shared<std::vector<char>>(kBytes, 'x');
  const std::weak_ptr<const void> left = held;
  shared_constant(SharedBytes{{held, held->data()}, kBytes});
  held.reset();
  EXPECT_TRUE(left.expired());
  // Other memory of the same bytes, and where the first lay.
  const SharedBytes later = block('x');
  EXPECT_EQ(shared_constant(later).data.get(), later.data.get());
}

TEST(SharedConstants, TensorsKeepTheirTypes) {
  const Tensor bytes = shared_constant(tensor(0));
  const Tensor numbers = shared_constant(Tensor::zeros(DType::kFloat32, {2, int64_t{kBytes / 8}}));
  EXPECT_EQ(numbers.raw(), bytes.raw());
  EXPECT_EQ(numbers.dtype(), DType::kFloat32);
  EXPECT_EQ(numbers.shape(), (Shape{2, int64_t{kBytes / 8}}));
}

// Kernels read beyond the end of what they keep, where a tensor's memory may end.
TEST(SharedConstants, KernelsAreGivenNoTensors) {
  const Tensor given = shared_constant(tensor(5));
  const SharedBytes own = block(5);
  EXPECT_EQ(shared_constant(own).data.get(), own.data.get());
  EXPECT_EQ(shared_constant(block(5)).data.get(), own.data.get());
}

TEST(SharedConstants, UnalignedTensorsStayApart) {
  Tensor larger = tensor(8, {int64_t{kBytes} + 64});
  const Tensor inside =
      Tensor::borrow(DType::kUInt8, {int64_t{kBytes}}, larger.data<uint8_t>() + 4);
  EXPECT_EQ(shared_constant(inside).raw(), inside.raw());
  const Tensor aligned = tensor(8);
  EXPECT_EQ(shared_constant(aligned).raw(), aligned.raw());
}

TEST(SharedConstants, StayApartWhereThatIsAsked) {
  const SharedBytes first = shared_constant(block(6));
  {
    const ConstantsApart apart;
    EXPECT_NE(shared_constant(block(6)).data.get(), first.data.get());
    EXPECT_NE(shared_constant(tensor(6)).raw(), first.data.get());
    // Of this thread alone.
    const void* other = nullptr;
    std::thread([&] { other = shared_constant(block(6)).data.get(); }).join();
    EXPECT_EQ(other, first.data.get());
  }
  EXPECT_EQ(shared_constant(block(6)).data.get(), first.data.get());
}

TEST(SharedConstants, OfThreadsAreOne) {
  constexpr int kThreads = 8, kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<SharedBytes> kept(kThreads);
    testing::on_threads(kThreads, [&](int t) {
      SharedBytes mine = shared_constant(block(7 + round % 2));
      shared_constant(block(200 + t));  // come and go
      kept[static_cast<size_t>(t)] = std::move(mine);
    });
    for (const SharedBytes& each : kept) {
      ASSERT_EQ(each.data.get(), kept[0].data.get());
      ASSERT_EQ(each.text()[0], static_cast<char>(7 + round % 2));
    }
  }
}

}  // namespace
}  // namespace collage
