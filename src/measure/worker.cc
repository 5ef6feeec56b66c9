#include "measure/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/machine_limits.h"
#include "base/stopwatch.h"
#include "measure/build_identity.h"
#include "measure/fault.h"
#include "measure/own_time.h"

extern char** environ;

namespace collage {

using nlohmann::json;

namespace {

constexpr int kMaxRestarts = 24;  // crashes within one task before the rest of it is given up
constexpr size_t kMaxAnswerLine = size_t{256} << 20;
constexpr const char* kPreparing = "preparing";

bool same_targets(const std::vector<TargetCosts>& costs, const MeasureTask& task) {
  return std::equal(
      costs.begin(), costs.end(), task.targets.begin(), task.targets.end(),
      [](const TargetCosts& entry, const std::string& target) { return entry.target == target; });
}

// What a worker answers of a task that it cannot begin.
std::vector<TargetCosts> refusals(const MeasureTask& task, const Invalid& why) {
  std::vector<TargetCosts> entries;
  for (const std::string& target : task.targets) {
    TargetCosts& entry = entries.emplace_back();
    entry.target = target;
    entry.refusal = why.reason;
    entry.failure = why.failure;
    log::info("{}: {}", target, entry.refusal);
  }
  return entries;
}

std::vector<TargetCosts> given_up(const MeasureTask& task, Invalid why) {
  why.reason = "measuring worker " + why.reason;
  return refusals(task, why);
}

// While one is alive, writing to a pipe that nobody reads fails instead of killing the process. A
// signal's action belongs to the whole process, which other threads may be changing; a mask is the
// thread's own.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalBlocked() {
    const timespec now{};
    if (!was_pending_)
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

Status interruption() { return error(ErrorCode::kUnavailable, "interrupted"); }

}  // namespace

WorkerLimits WorkerLimits::from_environment() {
  auto number = [](const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? 0.0 : std::strtod(text, nullptr);
  };
  WorkerLimits limits;
  if (double seconds = number("COLLAGE_MEASURE_TIMEOUT"); seconds > 0)
    limits.silence_seconds = seconds;
  if (double megabytes = number("COLLAGE_MEASURE_MEMORY"); megabytes > 0 && megabytes < 1e9)
    limits.memory_bytes = static_cast<size_t>(megabytes * 1e6);
  return limits;
}

Worker::~Worker() {
  stop();
  if (shared_ != nullptr) ::munmap(shared_, sizeof(SharedWithWorker));
  if (shared_fd_ >= 0) ::close(shared_fd_);
}

Status Worker::share_memory() {
  if (shared_ != nullptr) return {};
  shared_fd_ = ::memfd_create("collage worker", MFD_CLOEXEC);
  if (shared_fd_ < 0 || ::ftruncate(shared_fd_, sizeof(SharedWithWorker)) != 0)
    return error(ErrorCode::kUnavailable, "cannot start a measuring worker: {}",
                 std::strerror(errno));
  void* memory =
      ::mmap(nullptr, sizeof(SharedWithWorker), PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd_, 0);
  if (memory == MAP_FAILED)
    return error(ErrorCode::kUnavailable, "cannot start a measuring worker: {}",
                 std::strerror(errno));
  shared_ = static_cast<SharedWithWorker*>(memory);
  return {};
}

Status Worker::start() {
  if (pid_ > 0) return {};
  TRY(spawn());
  return agree_on_build();
}

Status Worker::agree_on_build() {
  std::string line;
  Invalid how;
  const bool answered = read_line(line, how);
  if (interrupted()) {
    stop();
    return interruption();
  }
  if (!answered)
    return error(ErrorCode::kUnavailable, "the measuring worker {} does not work: {}", command_[0],
                 how.reason);
  const json event = parse_json(line);
  const Result<const json*> identity = JsonFields(event).object("hello");
  const std::string difference =
      identity ? identity_difference(**identity) : "it does not say which build it is";
  if (difference.empty()) return {};
  stop();
  return error(ErrorCode::kUnavailable,
               "the measuring worker {} is of another build than this program: {}", command_[0],
               difference);
}

Status Worker::spawn() {
  TRY(share_memory());
  int tasks[2], events[2];
  if (::pipe2(tasks, O_CLOEXEC) != 0 || ::pipe2(events, O_CLOEXEC) != 0)
    return error(ErrorCode::kUnavailable, "cannot start a measuring worker: {}",
                 std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Moved out of the way first: the descriptors themselves may be 3, 4 or 5.
  int in = ::fcntl(tasks[0], F_DUPFD_CLOEXEC, 10), out = ::fcntl(events[1], F_DUPFD_CLOEXEC, 10),
      shared = ::fcntl(shared_fd_, F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_adddup2(&actions, in, kTasksFd);
  posix_spawn_file_actions_adddup2(&actions, out, kEventsFd);
  posix_spawn_file_actions_adddup2(&actions, shared, kSharedFd);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // What dying libraries say is for people who asked for all details.
  if (!log::is_shown(log::Level::kDebug))
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> arguments;
  for (std::string& word : command_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int code = ::posix_spawn(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  for (int fd : {tasks[0], events[1], in, out, shared}) ::close(fd);
  to_ = tasks[1];
  from_ = events[0];
  buffer_.clear();
  if (code != 0) {
    pid_ = -1;
    stop();
    return error(ErrorCode::kUnavailable, "cannot start the measuring worker {}: {}", command_[0],
                 std::strerror(code));
  }
  pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  rlimit none{0, 0};
  ::prlimit(pid_, RLIMIT_CORE, &none, nullptr);
  if (kLimitsWorkerMemory) {
    rlim_t bytes = limits_.memory_bytes > 0 ? limits_.memory_bytes : available_memory() / 5 * 4;
    rlimit memory{bytes, bytes};
    ::prlimit(pid_, RLIMIT_DATA, &memory, nullptr);
  }
  return {};
}

void Worker::stop() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);  // and whatever it forked
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
  for (int* fd : {&to_, &from_, &pid_fd_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

bool Worker::send(const json& message) {
  const PipeSignalBlocked blocked;
  const std::string line = json_text(message) + "\n";
  return write_all(to_, line.data(), line.size());
}

bool Worker::read_line(std::string& line, Invalid& how) {
  // Silence is counted in steps, so that time in which this process itself was stopped (a shell's
  // Ctrl-Z, a suspended machine) is not held against the worker.
  // Nor is time in which it waited for a processor, up to ten times its limit.
  constexpr double kMostTimes = 10;
  double silent = 0, waited = 0;
  OwnTime own_time(pid_);
  const double poll_seconds = std::clamp(limits_.silence_seconds / 2, 0.05, 1.0);
  uint32_t beats = shared_->beats.load();
  while (true) {
    size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return true;
    }
    if (interrupted() || buffer_.size() > kMaxAnswerLine) {
      how = {interrupted() ? "interrupted" : "an endless reply", WorkerFailure::kCrash};
      stop();
      return false;
    }
    // The end of the events is not enough to see a death: a process that the worker forked may
    // hold them open.
    pollfd wait[2] = {{from_, POLLIN, 0}, {pid_fd_, POLLIN, 0}};
    const Stopwatch watch;
    int ready = ::poll(wait, pid_fd_ >= 0 ? 2 : 1, static_cast<int>(poll_seconds * 1000));
    if (ready < 0) continue;  // a signal: look whether it was an interrupt
    ssize_t n = 0;
    if (wait[0].revents != 0) {
      char chunk[65536];
      n = ::read(from_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n > 0) {
        buffer_.append(chunk, static_cast<size_t>(n));
        silent = waited = 0;
        continue;
      }
    }
    if (wait[0].revents != 0 || wait[1].revents != 0) {
      // Descriptors are closed a moment before the end.
      constexpr int kGraceMs = 1000;
      pollfd end_of_process{pid_fd_, POLLIN, 0};
      const bool ended = pid_fd_ < 0 || ::poll(&end_of_process, 1, kGraceMs) > 0;
      ::kill(-pid_, SIGKILL);
      int status = 0;
      ::waitpid(pid_, &status, 0);
      pid_ = -1;
      stop();
      how = ended ? fault_of_exit(status, shared_->lacked.load())
                  : Invalid{"closed the way to its parent", WorkerFailure::kCrash};
      return false;
    }
    if (uint32_t now = shared_->beats.load(); now != beats) {
      beats = now;
      silent = waited = 0;
    }
    const double passed = std::min(watch.seconds(), 2 * poll_seconds);
    waited += passed;
    silent += own_time.of(passed);
    const double limit = limits_.silence_seconds;
    if (silent > limit) {
      how = {fmt::format("no sign of life for {:g} s", limit), WorkerFailure::kTimeout, limit};
    } else if (waited > kMostTimes * limit) {
      how = {fmt::format("no sign of life for {:g} s, in which it had the processor for {:g} s",
                         waited, silent),
             WorkerFailure::kMachine};
    } else {
      continue;
    }
    stop();
    return false;
  }
}

Result<Worker::Reply> Worker::exchange(const std::vector<MeasureTask>& tasks) {
  TRY(start());
  shared_->running = -1;
  shared_->lacked = 0;
  Reply reply;
  json message = json::array();
  for (const MeasureTask& task : tasks) message.push_back(to_json(task));
  (void)send(message);  // a worker that is gone shows as the end of its events
  std::vector<std::string> timed;
  std::string fault;
  for (std::string line; read_line(line, reply.how);) {
    const json event = parse_json(line);
    auto texts = [](const json& array) {
      std::vector<std::string> result;
      for (const json& entry : array)
        result.push_back(entry.is_string() ? entry.get<std::string>() : "");
      return result;
    };
    if (event.contains("begin") && event["begin"].is_string()) {
      reply.subject = event["begin"].get<std::string>();
      reply.while_timing = false;
    } else if (event.contains("timing") && event["timing"].is_array()) {
      timed = texts(event["timing"]);
      reply.while_timing = true;
    } else if (event.contains("fault") && event["fault"].is_string()) {
      fault = event["fault"].get<std::string>();
    } else if (event.contains("failed")) {
      Result<Invalid> why = invalid_from_json(event["failed"]);
      if (!why) why = Invalid{"a failure without a reason", WorkerFailure::kCrash};
      reply.answers.push_back(refusals(tasks[reply.answers.size()], *why));
      if (reply.answers.size() == tasks.size()) return reply;
    } else if (event.contains("done") && event["done"].is_array()) {
      std::vector<TargetCosts> answer;
      for (const json& entry : event["done"]) {
        Result<TargetCosts> costs = target_costs_from_json(entry);
        if (costs) answer.push_back(std::move(costs).value());
      }
      if (!same_targets(answer, tasks[reply.answers.size()])) {
        reply.how = {"an answer to another question", WorkerFailure::kCrash};
        stop();
        break;
      }
      reply.answers.push_back(std::move(answer));
      if (reply.answers.size() == tasks.size()) return reply;
    } else {
      reply.how = {"a garbled reply", WorkerFailure::kCrash};
      stop();
      break;
    }
  }
  if (interrupted()) return interruption();
  reply.died = true;
  if (!fault.empty()) reply.how.reason = fault + ": " + reply.how.reason;
  if (reply.while_timing) {
    // Which one ran when it died; nobody may be, between two.
    int32_t running = shared_->running.load();
    bool known = running >= 0 && static_cast<size_t>(running) < timed.size();
    reply.subject = known ? timed[static_cast<size_t>(running)] : "timing";
  }
  log::info("worker {} at {}", reply.how.reason, reply.subject.empty() ? "start" : reply.subject);
  if (reply.subject.empty())
    return error(ErrorCode::kUnavailable, "the measuring worker {} does not work: {}", command_[0],
                 reply.how.reason);
  return reply;
}

Result<std::vector<TargetCosts>> Worker::measure(MeasureTask task, const OnFailure& on_failure) {
  auto record = [&](const std::string& subject, const Invalid& how) {
    if (on_failure) on_failure(subject, how);
  };
  std::string suspect;            // was running when a worker died while it timed several
  std::set<std::string> retried;  // what may have died by chance
  for (int attempt = 0; attempt <= kMaxRestarts; ++attempt) {
    Reply reply = TRY(exchange({task}));
    if (reply.died && may_be_chance(reply.how.failure) && retried.insert(reply.subject).second)
      continue;
    if (!reply.died) {
      if (!suspect.empty()) record(suspect, task.skip[suspect]);
      return std::move(reply.answers[0]);
    }
    if (reply.while_timing) {
      if (!suspect.empty() || reply.subject == "timing") {
        task.skip.erase(suspect);
        return measure_one_by_one(std::move(task), reply, on_failure);
      }
      suspect = reply.subject;
      task.skip[suspect] = reply.how;
      continue;
    }
    if (!task.skip.emplace(reply.subject, reply.how).second) return given_up(task, reply.how);
    if (reply.subject != kPreparing) record(reply.subject, reply.how);
  }
  return internal_error("measuring worker died {} times on one sub-graph", kMaxRestarts);
}

Result<std::optional<Worker::Answers>> Worker::measure_together(
    const std::vector<MeasureTask>& tasks) {
  Reply reply = TRY(exchange(tasks));
  if (reply.died) return std::optional<Answers>();
  return std::optional(std::move(reply.answers));
}

Result<std::vector<TargetCosts>> Worker::measure_one_by_one(MeasureTask task, const Reply& failed,
                                                            const OnFailure& on_failure) {
  task.only = "nothing";
  Reply all = TRY(exchange({task}));
  if (all.died) return given_up(task, failed.how);
  std::vector<TargetCosts> costs = TRY(std::move(all.answers[0]));
  for (TargetCosts& entry : costs)
    for (MeasuredVariant& row : entry.variants) {
      if (!std::holds_alternative<Unknown>(row.cost)) continue;  // known to be deadly
      task.only = row.subject(entry.target);
      Reply alone = TRY(exchange({task}));
      if (alone.died && may_be_chance(alone.how.failure)) alone = TRY(exchange({task}));
      if (alone.died) {
        row.cost = alone.how;
        if (on_failure) on_failure(task.only, alone.how);
        continue;
      }
      for (TargetCosts& other : TRY(std::move(alone.answers[0])))
        for (MeasuredVariant& answer : other.variants)
          if (answer.subject(other.target) == task.only) row = std::move(answer);
    }
  return costs;
}

}  // namespace collage
