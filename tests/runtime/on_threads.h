// The threads of an application.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace collage::testing {

// Calls body(0) to body(count - 1), each on a thread of its own, all begun together.
inline void on_threads(int count, const std::function<void(int)>& body) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < count) std::this_thread::yield();
      body(t);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace collage::testing
