#include "measure/guarded_buffer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>

namespace collage {
namespace {

using Side = GuardedBuffer::Side;

GuardedBuffer make(size_t bytes, Side side) {
  return GuardedBuffer::allocate(bytes, side, "output 0").value();
}

// Reads or writes one byte without the compiler knowing where.
char* hidden(char* address) {
  asm volatile("" : "+r"(address));
  return address;
}
void write_at(char* address) { *const_cast<volatile char*>(hidden(address)) = 1; }
char read_at(char* address) { return *const_cast<volatile char*>(hidden(address)); }

class GuardedBufferDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST(GuardedBuffer, IsAlignedAndWritableThroughout) {
  for (size_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 100000})
    for (Side side : {Side::kEnd, Side::kBegin}) {
      GuardedBuffer buffer = make(bytes, side);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
      EXPECT_EQ(buffer.bytes(), bytes);
      buffer.fill(0x55);
      EXPECT_TRUE(buffer.check().ok());
    }
}

TEST(GuardedBuffer, SeesSmallWritesOnBothSides) {
  for (size_t bytes : {1, 60, 4097}) {
    GuardedBuffer behind = make(bytes, Side::kEnd);
    write_at(behind.data() + bytes);
    EXPECT_EQ(behind.check().message(), "wrote behind output 0");
    GuardedBuffer before = make(bytes, Side::kEnd);
    write_at(before.data() - 1);
    EXPECT_EQ(before.check().message(), "wrote before output 0");
    GuardedBuffer far = make(bytes, Side::kBegin);
    write_at(far.data() + bytes + 90);
    EXPECT_EQ(far.check().message(), "wrote behind output 0");
  }
}

TEST(GuardedBuffer, RefusesSizesThatNoMachineHas) {
  Result<GuardedBuffer> buffer = GuardedBuffer::allocate(~size_t{0} - 5, Side::kEnd, "output 0");
  EXPECT_FALSE(buffer.ok());
}

TEST_F(GuardedBufferDeathTest, FarAccessesKillAndNameTheBuffer) {
  const auto killed = ::testing::KilledBySignal(SIGSEGV);
  auto end = [] {
    report_faults_to(2);
    return make(100, Side::kEnd);
  };
  EXPECT_EXIT(write_at(end().data() + 128), killed, "accessed memory behind output 0");
  EXPECT_EXIT(read_at(end().data() + 128), killed, "accessed memory behind output 0");
  auto begin = [] {
    report_faults_to(2);
    return make(100, Side::kBegin);
  };
  EXPECT_EXIT(write_at(begin().data() - 1), killed, "accessed memory before output 0");
  EXPECT_EXIT(read_at(begin().data() - 1), killed, "accessed memory before output 0");
}

TEST_F(GuardedBufferDeathTest, WritesIntoReadOnlyBuffersKill) {
  EXPECT_EXIT(
      {
        report_faults_to(2);
        GuardedBuffer buffer = make(100, Side::kEnd);
        buffer.fill(3);
        buffer.make_read_only();
        if (read_at(buffer.data()) == 3) write_at(buffer.data() + 50);
      },
      ::testing::KilledBySignal(SIGSEGV), "wrote into output 0");
}

TEST_F(GuardedBufferDeathTest, OtherFaultsAreNotAttributed) {
  EXPECT_EXIT(
      {
        report_faults_to(2);
        GuardedBuffer buffer = make(100, Side::kEnd);
        write_at(reinterpret_cast<char*>(8));
      },
      ::testing::KilledBySignal(SIGSEGV), "^[^{]*$");
}

}  // namespace
}  // namespace collage
