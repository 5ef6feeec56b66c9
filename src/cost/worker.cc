#include "cost/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/log.h"
#include "cost/measure.h"

extern char** environ;

namespace collage {

using nlohmann::json;

namespace {

constexpr int kTasksFd = 3, kEventsFd = 4;
constexpr int kSilenceMs = 180 * 1000;  // a candidate may compile or run this long
constexpr int kMaxRestarts = 24;        // crashes within one task before the rest of it is given up

bool write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {} in the middle of a measurement", WEXITSTATUS(status));
}

}  // namespace

int run_worker(int in_fd, int out_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  FILE* in = ::fdopen(in_fd, "r");
  if (in == nullptr) return 1;
  char* line = nullptr;
  size_t capacity = 0;
  while (::getline(&line, &capacity, in) > 0) {
    auto send = [&](const json& event) {
      return write_all(out_fd, event.dump(-1, ' ', true, json::error_handler_t::replace) + "\n");
    };
    Announce announce = [&](const std::string& subject) { send({{"begin", subject}}); };
    Result<MeasureTask> task = task_from_json(parse_json(line));
    Result<std::vector<TargetCosts>> costs = !task ? Result<std::vector<TargetCosts>>(task.status())
                                             : task->is_conversion()
                                                 ? measure_conversion(*task, announce)
                                                 : measure_function(*task, announce);
    json reply;
    if (costs) {
      json list = json::array();
      for (const TargetCosts& entry : *costs) list.push_back(to_json(entry));
      reply = {{"done", list}};
    } else {
      reply = {{"failed", costs.status().to_string()}};
    }
    if (!send(reply)) break;
  }
  std::free(line);
  // Vendor libraries may crash in their destructors; nothing here needs them.
  ::_exit(0);
}

Worker::~Worker() { stop(); }

Status Worker::start() {
  if (pid_ > 0) return {};
  int tasks[2], events[2];
  if (::pipe2(tasks, O_CLOEXEC) != 0 || ::pipe2(events, O_CLOEXEC) != 0)
    return error(ErrorCode::kUnavailable, "cannot start a measuring worker: {}",
                 std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Moved out of the way first: the pipes' own descriptors may be 3 or 4.
  int in = ::fcntl(tasks[0], F_DUPFD_CLOEXEC, 10), out = ::fcntl(events[1], F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_adddup2(&actions, in, kTasksFd);
  posix_spawn_file_actions_adddup2(&actions, out, kEventsFd);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
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
  for (int fd : {tasks[0], events[1], in, out}) ::close(fd);
  to_ = tasks[1];
  from_ = events[0];
  buffer_.clear();
  if (code != 0) {
    pid_ = -1;
    stop();
    return error(ErrorCode::kUnavailable, "cannot start the measuring worker {}: {}", command_[0],
                 std::strerror(code));
  }
  return {};
}

void Worker::stop() {
  for (int* fd : {&to_, &from_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
}

bool Worker::read_line(std::string& line, std::string& reason) {
  while (true) {
    size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return true;
    }
    pollfd wait{from_, POLLIN, 0};
    int ready = ::poll(&wait, 1, kSilenceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      reason = fmt::format("no answer within {} s", kSilenceMs / 1000);
      stop();
      return false;
    }
    char chunk[65536];
    ssize_t n = ::read(from_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int status = 0;
      ::waitpid(pid_, &status, 0);
      ::kill(-pid_, SIGKILL);  // whatever it forked
      pid_ = -1;
      reason = describe_exit(status);
      stop();
      return false;
    }
    buffer_.append(chunk, static_cast<size_t>(n));
  }
}

Result<Worker::Reply> Worker::exchange(const MeasureTask& task) {
  TRY(start());
  Reply reply;
  struct sigaction ignore {
  }, previous{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &previous);
  bool sent = write_all(to_, to_json(task).dump() + "\n");
  ::sigaction(SIGPIPE, &previous, nullptr);
  (void)sent;  // a worker that is gone shows as the end of its events
  for (std::string line; read_line(line, reply.reason);) {
    json event = parse_json(line);
    if (event.contains("begin") && event["begin"].is_string()) {
      reply.subject = event["begin"].get<std::string>();
    } else if (event.contains("done") && event["done"].is_array()) {
      for (const json& entry : event["done"])
        reply.costs.push_back(TRY(target_costs_from_json(entry)));
      return reply;
    } else if (event.contains("failed") && event["failed"].is_string()) {
      return internal_error("{}", event["failed"].get<std::string>());
    } else {
      reply.reason = "a garbled reply";
      stop();
      break;
    }
  }
  reply.died = true;
  return reply;
}

Result<std::vector<TargetCosts>> Worker::measure(MeasureTask task) {
  std::map<std::string, std::string> deaths;  // subject to reason
  for (int attempt = 0; attempt <= kMaxRestarts; ++attempt) {
    Reply reply = TRY(exchange(task));
    if (!reply.died) {
      for (TargetCosts& entry : reply.costs) {
        if (auto it = deaths.find(entry.target); it != deaths.end()) entry.refusal = it->second;
        for (MeasuredVariant& row : entry.variants)
          if (auto it = deaths.find(entry.target + "|" + row.variant.to_string());
              it != deaths.end())
            row.cost = Invalid{it->second};
      }
      return std::move(reply.costs);
    }
    log::info("worker {} at {}", reply.reason, reply.subject.empty() ? "start" : reply.subject);
    if (reply.subject.empty())
      return error(ErrorCode::kUnavailable, "the measuring worker {} does not work: {}",
                   command_[0], reply.reason);
    // A death while survivors were timed together cannot be blamed on one: give up the task.
    if (reply.subject == "timing" || !task.skip.insert(reply.subject).second)
      return internal_error("measuring worker {}", reply.reason);
    deaths[reply.subject] = reply.reason;
  }
  return internal_error("measuring worker died {} times on one sub-graph", kMaxRestarts);
}

}  // namespace collage
