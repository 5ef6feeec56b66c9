// collage worker: measures for others. With --db it tunes models, the tasks that `collage fleet`
// filed for machines like this, until it is told to end. Without, it is the process that measures
// candidates for a parent (measure/worker.h), which is not for people.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/log.h"
#include "base/machine_limits.h"
#include "base/memory_file.h"
#include "base/printable.h"
#include "base/scratch_folder.h"
#include "base/stopwatch.h"
#include "compiler/worker_command.h"
#include "cost/cost_keys.h"
#include "cost/database.h"
#include "cost/postgres_tables.h"
#include "fleet.h"
#include "measure/worker_loop.h"
#include "options.h"

namespace collage::tool {

namespace {

namespace fs = std::filesystem;

struct WorkerOptions {
  std::string database;
  std::vector<std::string> plugins;
  FleetRole role = FleetRole::kAll;
  double idle_seconds = 1e9, task_seconds = 6 * 3600;
};

struct Attempt {
  TaskEnd end;
  std::string why;
};

std::string host_name() { return machine_name().substr(0, machine_name().find(' ')); }

// Held by this process and by those that it starts: one task is measured on a machine at a time.
Status lock_machine() {
  const fs::path file = TRY(cache_folder()) / ("worker-" + host_name() + ".lock");
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
  if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) == 0) return {};
  const char* why = errno == EWOULDBLOCK ? "another worker is on this machine" : strerror(errno);
  return error(ErrorCode::kUnavailable, "{}: {}", file.string(), why);
}

FleetWorker this_worker(FleetRole role) {
  const CostKeys keys(available_cores(), CacheState::kWarm);
  return {fmt::format("{} {} of {}", host_name(), ::getpid(), std::time(nullptr)),
          keys.fingerprint(), keys.processor(), machine_name(), role};
}

// Calls again while the server is away, unless this process is to end.
template <typename Call>
auto persistently(const Call& call) -> decltype(call()) {
  for (bool is_first = true;; is_first = false) {
    auto result = call();
    if (result || result.status().code() != ErrorCode::kUnavailable || interrupted()) return result;
    if (is_first) log::warn("{}; trying again", result.status().to_string());
    ::sleep(1);  // or until a signal
  }
}

// What the model or its flags cause, every attempt would meet; others ended without an answer.
TaskEnd end_of(ErrorCode code) {
  for (const ErrorCode of_model :
       {ErrorCode::kUsage, ErrorCode::kBadModel, ErrorCode::kUnsupported, ErrorCode::kVerification})
    if (code == of_model) return TaskEnd::kFailed;
  return TaskEnd::kDied;
}

// The model's file: where it was filed, if this machine sees it there, else a copy.
Result<std::string> model_file(TaskQueue& queue, const FleetTask& task,
                               std::optional<ScratchFolder>& folder) {
  std::error_code ec;
  if (fs::is_regular_file(task.model, ec))
    if (const Result<std::string> bytes = read_file(task.model);
        bytes && sha256_hex(*bytes) == task.content)
      return task.model;
  const std::optional<std::string> bytes =
      TRY(persistently([&] { return queue.model(task.content); }));
  if (!bytes)
    return bad_model("the file is not on this machine, and is too large for the database");
  folder.emplace(TRY(ScratchFolder::create(fs::temp_directory_path(ec), "collage-task-")));
  const fs::path file = folder->path() / ("model" + fs::path(task.model).extension().string());
  TRY(write_file_atomically(file, *bytes));
  return file.string();
}

Result<pid_t> start(std::vector<std::string> words, const MemoryFile& errors) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    return error(ErrorCode::kUnavailable, "cannot start a process: {}", std::strerror(errno));
  if (child > 0) return child;
  ::setpgid(0, 0);                     // Ctrl-C is for the worker, which tells it
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // it ends with the worker
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(errors.descriptor(), STDERR_FILENO);
  ::execv(arguments[0], arguments.data());
  ::_exit(1);
}

// Runs a command to its end, which comes early where `goes_on`, asked every second, says no. As
// waitpid tells it.
Result<int> run_while(const std::vector<std::string>& words, const MemoryFile& errors,
                      const std::function<bool()>& goes_on) {
  constexpr double kPatience = 20;  // before it is killed
  const pid_t child = TRY(start(words, errors));
  pollfd process{static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  std::optional<Stopwatch> told;
  int status = SIGKILL;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    ::poll(&process, 1, 1000);
    if (!told && !goes_on()) {
      told.emplace();
      ::kill(child, SIGTERM);
    }
    if (told && told->seconds() > kPatience) ::kill(child, SIGKILL);
  }
  if (process.fd >= 0) ::close(process.fd);
  return status;
}

Result<Attempt> attempt(TaskQueue& queue, const FleetWorker& worker, const FleetTask& task,
                        const WorkerOptions& options) {
  std::optional<ScratchFolder> folder;
  const std::string file = TRY(model_file(queue, task, folder));
  std::vector<std::string> words = {"/proc/self/exe", "-q", "tune", file,
                                    "--db=" + options.database};
  for (const std::string& plugin : options.plugins) words.push_back("--plugin=" + plugin);
  if (worker.role == FleetRole::kBuild) words.push_back("--emit=kernels");
  for (const nlohmann::json& flag : parse_json(task.flags)) {
    words.push_back(flag.is_string() ? flag.get<std::string>() : "");
    if (!may_be_sent(words.back().substr(0, words.back().find('='))))
      return usage_error("no worker takes the flag '{}'", words.back());
  }
  const MemoryFile errors = TRY(MemoryFile::create("collage-task", 1 << 20));
  const Stopwatch whole;
  Stopwatch beat;
  bool is_mine = true, goes_on = true;
  const int status = TRY(run_while(words, errors, [&] {
    if (beat.seconds() > queue.lease_seconds() / 6) {
      const Result<bool> renewed = queue.renew(worker, task);
      is_mine = !renewed || *renewed;  // a server that is away took nothing
      beat.restart();
    }
    return goes_on = is_mine && !interrupted() && whole.seconds() < options.task_seconds;
  }));
  std::string why = TRY(errors.content());  // of its last line
  while (why.ends_with('\n')) why.pop_back();
  why.erase(0, why.rfind('\n') + 1);
  if (why.starts_with("collage: ")) why.erase(0, 9);
  if (const size_t at = why.find(file); at != std::string::npos)
    why.replace(at, file.size(), task.model);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return Attempt{worker.role == FleetRole::kBuild ? TaskEnd::kBuilt : TaskEnd::kDone, ""};
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (!goes_on || signal == SIGTERM || signal == SIGINT ||
      (signal == 0 && WEXITSTATUS(status) == kInterruptedStatus))
    return Attempt{TaskEnd::kGivenBack, ""};
  if (why.starts_with("cost database")) return Attempt{TaskEnd::kGivenBack, why};  // is away
  if (signal != 0)
    return Attempt{TaskEnd::kDied, fmt::format("the process that tuned it ended by signal {} on {}",
                                               signal, host_name())};
  return Attempt{end_of(static_cast<ErrorCode>(WEXITSTATUS(status))), printable(why, 500)};
}

Status work_on(TaskQueue& queue, const FleetWorker& worker, const FleetTask& task,
               const WorkerOptions& options) {
  const Stopwatch watch;
  const Result<Attempt> made = attempt(queue, worker, task, options);
  Attempt ended = made ? *made : Attempt{end_of(made.status().code()), made.status().to_string()};
  if (interrupted() && ended.end == TaskEnd::kDied) ended.end = TaskEnd::kGivenBack;
  // What is done is on the server: opening it sends what its absence left in the spool.
  if (ended.end == TaskEnd::kDone)
    TRY(persistently([&] { return CostDatabase::open_at(options.database); }).status());
  const bool counts =
      TRY(persistently([&] { return queue.end(worker, task, ended.end, ended.why); }));
  constexpr const char* kNames[] = {"done", "failed", "given back", "no answer", "built"};
  fmt::print("{}  {}{}{}, {:.1f} s\n", printable(task.model, 500),
             counts ? kNames[static_cast<int>(ended.end)] : "taken by another worker meanwhile",
             ended.why.empty() ? "" : ": ", ended.why, watch.seconds());
  std::fflush(stdout);
  if (!counts || ended.end == TaskEnd::kGivenBack) ::sleep(1);
  return {};
}

// Whether this machine measures as others of its kind do, and as it did a moment ago.
Status calibrate_machine(TaskQueue& queue, const FleetWorker& worker) {
  CostOptions costs;
  costs.worker_command = TRY(worker_command({}));
  costs.effort = Effort::kFast;
  costs.cache = CacheState::kWarm;
  const std::vector<CalibrationFigure> figures = TRY(calibrate(costs));
  if (interrupted()) return {};
  if (figures.empty()) log::warn("nothing was found to calibrate this machine with");
  const std::string noise = TRY(persistently([&] { return queue.judge(worker, figures); }));
  if (noise.empty()) return {};
  return error(ErrorCode::kUnavailable,
               "{} is noisy: {}; what it measures decides nothing until `collage db prune refused`",
               worker.machine, noise);
}

Status take_tasks(TaskQueue& queue, const FleetWorker& worker, const WorkerOptions& options) {
  constexpr double kBetweenCalibrations = 600;  // seconds
  const bool measures = worker.role != FleetRole::kBuild;
  if (measures) TRY(calibrate_machine(queue, worker));
  Stopwatch since_calibration;
  for (Stopwatch idle; !interrupted();) {
    if (measures && since_calibration.seconds() > kBetweenCalibrations) {
      TRY(calibrate_machine(queue, worker));
      since_calibration.restart();
    }
    const Result<std::optional<FleetTask>> task = persistently([&] { return queue.take(worker); });
    if (!task && interrupted()) break;
    TRY(task.status());
    if (*task) {
      TRY(work_on(queue, worker, **task, options));
      idle.restart();
    } else if (idle.seconds() >= options.idle_seconds) {
      break;
    } else {
      ::sleep(1);
    }
  }
  return {};
}

Status work(const WorkerOptions& options) {
  const std::unique_ptr<TaskQueue> queue = TRY(open_queue(options.database));
  TRY(lock_machine());
  const FleetWorker worker = this_worker(options.role);
  InterruptScope interrupts;
  Status status = take_tasks(*queue, worker, options);
  if (interrupted()) status = {};
  (void)queue->leave(worker);
  return status;
}

}  // namespace

Command add_worker(CLI::App& app) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand("worker", "take the tasks that `fleet` files");
  command->add_option("--db", options->database, "the database: postgresql://...");
  command
      ->add_option("--emit", options->role,
                   "kernels: only compile them, for others; costs: only of tasks whose kernels "
                   "are there (default: all)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, FleetRole>{
          {"kernels", FleetRole::kBuild}, {"costs", FleetRole::kMeasure}}));
  command->add_option("--plugin", options->plugins, "a shared library with a backend of its own")
      ->allow_extra_args(false);
  command
      ->add_option("--duration", options->idle_seconds,
                   "end after so many seconds without a task (0: as soon as none waits)")
      ->check(CLI::Range(0.0, 1e9));
  command
      ->add_option("--budget", options->task_seconds,
                   "give a task back after so many seconds; it goes on later (default: 6 hours)")
      ->check(CLI::Range(1.0, 1e9));
  return {command, [options]() -> Status {
            register_all();
            for (const std::string& plugin : options->plugins) TRY(load_plugin(plugin));
            if (!options->database.empty()) return work(*options);
            if (run_worker() != 0) return usage_error("worker: --db postgresql://... is missing");
            return {};
          }};
}

}  // namespace collage::tool
