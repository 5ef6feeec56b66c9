#include "runtime/of_process.h"

#include <pthread.h>

namespace collage {

namespace {

std::atomic<int> generation{0};

}  // namespace

int process_generation() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++generation; });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace collage
