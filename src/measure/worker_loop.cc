#include "measure/worker_loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "base/files.h"
#include "measure/build_identity.h"
#include "measure/fault.h"
#include "measure/guarded_buffer.h"
#include "measure/measure.h"
#include "measure/worker_channel.h"

namespace collage {

using nlohmann::json;

namespace {

std::atomic<uint32_t>* lacked = nullptr;

[[noreturn]] void note_failed_allocation() {
  lacked->fetch_or(kLacksMemory);
  throw std::bad_alloc();
}

// Libraries end a process that lacks something: OpenMP where it cannot start a thread, LLVM where
// it cannot write.
void note_exit() { lacked->fetch_or(lacking_now(/*in_signal=*/false)); }

// Or they use memory that they were not given.
void note_fault() { lacked->fetch_or(lacking_now(/*in_signal=*/true)); }

void note_abort(int signal) {
  note_fault();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Of an exception that nobody caught.
[[noreturn]] void note_exception() {
  try {
    if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    lacked->fetch_or(kLacksMemory);
  } catch (const std::system_error&) {  // no thread, as a rule
    lacked->fetch_or(kLacksThreads);
  } catch (...) {
  }
  std::abort();
}

json to_json(const Result<std::vector<TargetCosts>>& costs) {
  if (!costs) return {{"failed", to_json(fault_of(costs.status()))}};
  json list = json::array();
  for (const TargetCosts& entry : *costs) list.push_back(collage::to_json(entry));
  return {{"done", list}};
}

// One for each task of the message, in order.
std::vector<Result<std::vector<TargetCosts>>> answers_to(const json& message,
                                                         const MeasureHooks& hooks,
                                                         NoiseGate& gate) {
  std::vector<MeasureTask> tasks;
  for (const json& entry : message) {
    Result<MeasureTask> task = task_from_json(entry);
    if (!task) return {task.status()};
    tasks.push_back(std::move(task).value());
  }
  if (tasks.size() == 1 && tasks[0].function() == nullptr)
    return {measure_conversion(tasks[0], hooks, gate)};
  return measure_functions(tasks, hooks, gate);
}

}  // namespace

int run_worker() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  FILE* in = ::fdopen(kTasksFd, "r");
  if (in == nullptr || ::fcntl(kEventsFd, F_GETFD) < 0) return 1;
  auto send = [&](const json& event) {
    const std::string line = json_text(event) + "\n";
    return write_all(kEventsFd, line.data(), line.size());
  };
  if (!send({{"hello", build_identity()}})) return 1;
  NoiseGate gate;
  MeasureHooks hooks;
  hooks.begin = [&](const std::string& subject) {
    if (lacked != nullptr) lacked->store(0);
    send({{"begin", subject}});
  };
  hooks.timing = [&](const std::vector<std::string>& subjects) { send({{"timing", subjects}}); };
  hooks.give_up = [&](const std::string& why) {
    send({{"fault", why}});
    ::_exit(1);
  };
  void* memory =
      ::mmap(nullptr, sizeof(SharedWithWorker), PROT_READ | PROT_WRITE, MAP_SHARED, kSharedFd, 0);
  if (memory != MAP_FAILED) {
    auto* shared = static_cast<SharedWithWorker*>(memory);
    hooks.running = &shared->running;
    hooks.beats = &shared->beats;
    lacked = &shared->lacked;
    std::set_new_handler(note_failed_allocation);
    std::set_terminate(note_exception);
    std::atexit(note_exit);
    ::signal(SIGABRT, note_abort);
  }
  report_faults_to(kEventsFd, lacked != nullptr ? note_fault : nullptr);
  char* line = nullptr;
  size_t capacity = 0;
  while (::getline(&line, &capacity, in) > 0) {
    bool heard = true;
    for (const auto& costs : answers_to(parse_json(line), hooks, gate))
      heard = heard && send(to_json(costs));
    if (!heard) break;
  }
  std::free(line);
  // Vendor libraries may crash in their destructors; nothing here needs them.
  ::_exit(0);
}

}  // namespace collage
