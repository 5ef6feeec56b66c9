#include "runtime/of_process.h"

#include <pthread.h>

namespace collage {

namespace {

std::atomic<int> generation{0};
[[maybe_unused]] const int kChildrenCount = pthread_atfork(nullptr, nullptr, [] { ++generation; });

}  // namespace

int process_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace collage
