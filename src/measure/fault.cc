#include "measure/fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace collage {

namespace {

bool has_memory() {
  constexpr size_t kSome = size_t{16} << 20;
  void* memory = ::mmap(nullptr, kSome, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, kSome);
  return true;
}

bool has_thread() {
  pthread_t thread;
  const auto nothing = [](void*) -> void* { return nullptr; };
  return ::pthread_create(&thread, nullptr, nothing, nullptr) == 0 &&
         ::pthread_join(thread, nullptr) == 0;
}

// Libraries keep temporary files there.
bool has_disk() {
  const char* folder = std::getenv("TMPDIR");
  const int fd = ::open(folder != nullptr && *folder != '\0' ? folder : "/tmp",
                        O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return errno != ENOSPC && errno != EDQUOT && errno != EROFS && errno != ENOENT;
  char page[4096] = {};
  const bool written = ::write(fd, page, sizeof page) == static_cast<ssize_t>(sizeof page);
  ::close(fd);
  return written;
}

}  // namespace

uint32_t lacking_now(bool in_signal) {
  uint32_t lacks = 0;
  if (!has_memory()) lacks |= kLacksMemory;
  if (!in_signal && !has_thread()) lacks |= kLacksThreads;
  if (!has_disk()) lacks |= kLacksDisk;
  return lacks;
}

Invalid fault_of(const Status& failure) {
  const bool of_machine = failure.code() == ErrorCode::kUnavailable;
  return {failure.to_string(), of_machine ? WorkerFailure::kMachine : WorkerFailure::kNone};
}

Invalid fault_of_exit(int status, uint32_t lacked) {
  const bool memory = (lacked & kLacksMemory) != 0;
  const std::string why = memory                          ? "out of memory: "
                          : (lacked & kLacksThreads) != 0 ? "no thread can be started: "
                          : (lacked & kLacksDisk) != 0 ? "the folder of temporary files is full: "
                                                       : "";
  const WorkerFailure failure = memory        ? WorkerFailure::kMemory
                                : lacked != 0 ? WorkerFailure::kMachine
                                              : WorkerFailure::kCrash;
  if (!WIFSIGNALED(status))
    return {fmt::format("{}exited with status {} in the middle of a measurement", why,
                        WEXITSTATUS(status)),
            failure};
  const int signal = WTERMSIG(status);
  return {fmt::format("{}killed by signal {} ({})", why, signal, strsignal(signal)),
          signal == SIGKILL ? WorkerFailure::kMemory : failure};
}

}  // namespace collage
