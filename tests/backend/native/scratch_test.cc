// Compiled code asks for scratch memory and uses what it gets without looking, and has its loops
// run in parallel.
#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "backend/native/kernels/runtime_hooks.h"

namespace collage::native {
namespace {

template <typename F>
F* hook(const std::string& name) {
  for (const Hook& one : runtime_hooks())
    if (one.name == name) return reinterpret_cast<F*>(one.function);
  return nullptr;
}

void* take(size_t bytes) { return hook<void*(void*, size_t)>("halide_malloc")(nullptr, bytes); }
void give_back(void* memory) { hook<void(void*, void*)>("halide_free")(nullptr, memory); }

void use(size_t bytes) {
  auto* some = static_cast<char*>(take(100));
  auto* memory = static_cast<volatile char*>(take(bytes));
  memory[0] = some[0] = 1;
  give_back(const_cast<char*>(memory));
  give_back(some);
}

constexpr size_t kModest = 1 << 20, kTooMuch = size_t{1} << 60;

std::array<uint8_t, 64> done;

int task(void*, int i, uint8_t*) {
  use(i == 7 ? kTooMuch : kModest);
  done[static_cast<size_t>(i)] = 1;
  return 0;
}

int loop(void**) {
  const auto spread =
      hook<int(void*, int (*)(void*, int, uint8_t*), int, int, uint8_t*)>("halide_do_par_for");
  // Without assertions compiled code goes on after a loop that failed.
  (void)spread(nullptr, task, 0, static_cast<int>(done.size()), nullptr);
  return 0;
}

TEST(Scratch, EndsACallWhereItCannotBeHad) {
  const uint64_t failures = scratch_failures();
  EXPECT_EQ(call_compiled([](void**) { return use(kModest), 0; }, nullptr), 0);
  EXPECT_EQ(scratch_failures(), failures);
  EXPECT_NE(call_compiled([](void**) { return use(kTooMuch), 0; }, nullptr), 0);
  EXPECT_EQ(scratch_failures(), failures + 1);
  EXPECT_EQ(take_kernel_error(), "out of memory");
  EXPECT_EQ(call_compiled([](void**) { return use(kModest), 0; }, nullptr), 0) << "the next call";
}

std::array<std::atomic<int>, 67> times;

int counted(void*, int i, uint8_t*) {
  ++times[static_cast<size_t>(i)];
  return 0;
}

// Also within a region of the application's, where the loop has fewer threads than there are.
TEST(Loop, EachTaskRunsOnceWhateverThreadsThereAre) {
  const auto all = [](void**) {
    const auto spread =
        hook<int(void*, int (*)(void*, int, uint8_t*), int, int, uint8_t*)>("halide_do_par_for");
    return spread(nullptr, counted, 1, static_cast<int>(times.size()) - 1, nullptr);
  };
  EXPECT_EQ(call_compiled(all, nullptr), 0);
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    EXPECT_EQ(call_compiled(all, nullptr), 0);
  }
  for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], i == 0 ? 0 : 2) << i;
}

TEST(Scratch, OfOneTaskOfALoopLeavesTheOthers) {
  const uint64_t failures = scratch_failures();
  done.fill(0);
  call_compiled(loop, nullptr);
  EXPECT_EQ(scratch_failures(), failures + 1);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], i == 7 ? 0 : 1) << i;
}

}  // namespace
}  // namespace collage::native
