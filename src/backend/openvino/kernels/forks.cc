#include "backend/openvino/kernels/forks.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace collage::openvino {

namespace {

using namespace std::chrono_literals;

// Returns whether any thread but this one runs, or would if it had a core. The state follows the
// name, which is in parentheses and may hold some.
bool others_run() {
  const std::string own = std::to_string(gettid());
  std::error_code gone;
  std::filesystem::directory_iterator task("/proc/self/task", gone);
  for (; task != std::filesystem::directory_iterator(); task.increment(gone)) {
    if (task->path().filename() == own) continue;
    std::ifstream file(task->path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name = line.rfind(") ");
    if (name != std::string::npos && line[name + 2] == 'R') return true;
  }
  return false;
}

void wait_for_sleep() {
  const auto end = std::chrono::steady_clock::now() + 1s;
  // Twice in a row: a thread that is seen asleep may be woken by one that is looked at later.
  for (int asleep = 0; asleep < 2 && std::chrono::steady_clock::now() < end;) {
    if (!others_run()) {
      ++asleep;
      continue;
    }
    asleep = 0;
    std::this_thread::sleep_for(100us);
  }
}

}  // namespace

void let_workers_sleep_before_forks() {
  static const int registered = pthread_atfork(wait_for_sleep, nullptr, nullptr);
  (void)registered;
}

}  // namespace collage::openvino
