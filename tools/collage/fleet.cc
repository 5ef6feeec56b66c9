// collage fleet: has the workers of a database (worker.cc) measure what models need: a task for
// each model and each fingerprint among the workers that are present. Tasks that are there already
// stay as they are, so it may be interrupted and called again.

#include "fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/files.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/json_fields.h"
#include "base/log.h"
#include "cost/postgres_storage.h"
#include "measure/worker.h"
#include "options.h"

namespace collage::tool {

bool may_be_sent(std::string_view flag) {
  for (const char* sent :
       {"--targets", "--devices", "--exclude", "--pin", "--memory", "--threads", "--shapes",
        "--dim", "--max-error", "--effort", "--budget", "--accuracy"})
    if (flag == sent) return true;
  return false;
}

Result<std::unique_ptr<TaskQueue>> open_queue(const std::string& address) {
  if (!PostgresStorage::is_address(address))
    return usage_error("--db {}: tasks are kept on a server: postgresql://USER@HOST/DATABASE",
                       address);
  return TaskQueue::open(address, std::min(60.0, WorkerLimits::from_environment().silence_seconds));
}

namespace {

constexpr size_t kMostSent = size_t{64} << 20;  // bytes of a model's file

using Tasks = std::map<std::string, FleetTask>;  // by id
using States = std::map<std::string, TaskState>;

Result<std::string> sent_flags(const CLI::App& command) {
  nlohmann::json flags = nlohmann::json::array();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || !name.starts_with("--") || name == "--db") continue;
    if (!may_be_sent(name)) return usage_error("fleet: {} is not for other machines", name);
    for (const std::string& value : option->results()) flags.push_back(name + "=" + value);
  }
  return json_text(flags);
}

// Files what is missing for the fingerprints that are present now, and adds it to `tasks`.
Result<States> look(TaskQueue& queue, const std::vector<FleetTask>& models, Tasks& tasks) {
  for (const FleetWorker& worker : TRY(queue.present()))
    for (FleetTask task : models) {
      task.fingerprint = worker.fingerprint;
      task.processor = worker.processor;
      tasks.emplace(task.id(), task);
    }
  std::vector<std::string> ids;
  for (const auto& [id, task] : tasks) ids.push_back(id);
  States states = TRY(queue.states(ids));
  std::vector<FleetTask> missing;
  for (const auto& [id, task] : tasks)
    if (states.try_emplace(id, TaskState{"waiting", ""}).second) missing.push_back(task);
  if (!missing.empty()) TRY(queue.file(missing));
  return states;
}

std::string progress_of(const Result<States>& states) {
  if (!states) return "the server is away: " + states.status().to_string();
  if ((*states).empty()) return "no worker is present (collage worker)";
  std::map<std::string, size_t> count;
  for (const auto& [id, state] : *states) ++count[state.name];
  return fmt::format("{} done, {} running, {} waiting, {} failed", count["done"], count["running"],
                     count["waiting"], count["failed"] + count["quarantined"]);
}

// One line of a terminal; elsewhere, with -v, a line for each change.
void show(const std::string& line, std::string& shown) {
  if (std::exchange(shown, line) == line || !log::is_shown(log::Level::kWarn)) return;
  if (::isatty(STDERR_FILENO) == 0) return log::info("{}", line);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

Result<States> wait_for(TaskQueue& queue, const std::vector<FleetTask>& models, Tasks& tasks) {
  InterruptScope interrupts;
  std::string shown;
  while (true) {
    Result<States> states = look(queue, models, tasks);
    if (!states && states.status().code() != ErrorCode::kUnavailable) return states;
    show(progress_of(states), shown);
    const bool has_ended = states && !states->empty() &&
                           std::all_of(states->begin(), states->end(),
                                       [](const auto& state) { return state.second.has_ended(); });
    if ((has_ended || interrupted()) && ::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\n");
    if (has_ended) return states;
    if (interrupted()) {
      fmt::print(stderr, "collage: interrupted: the tasks stay; call it again to wait for them\n");
      std::_Exit(kInterruptedStatus);
    }
    ::sleep(1);  // or until a signal
  }
}

Status fleet(const std::string& database, const std::string& flags,
             const std::vector<std::string>& paths) {
  const std::unique_ptr<TaskQueue> queue = TRY(open_queue(database));
  std::vector<FleetTask> models;
  for (const std::string& path : paths) {
    const std::string bytes = TRY(read_file(path));
    std::error_code ec;
    models.push_back(
        {"", "", sha256_hex(bytes), std::filesystem::absolute(path, ec).string(), flags});
    if (bytes.size() <= kMostSent) TRY(queue->keep_model(models.back().content, bytes));
  }
  Tasks tasks;
  States states = TRY(wait_for(*queue, models, tasks));
  size_t failed = 0;
  for (const auto& [id, task] : tasks) {
    if (states[id].name == "done") continue;
    ++failed;
    fmt::print("{}  {} on {}: {}\n", task.model, states[id].name, task.processor, states[id].error);
  }
  if (failed > 0) return internal_error("{} of {} tasks failed", failed, tasks.size());
  fmt::print("{} tasks done\n", tasks.size());
  return {};
}

}  // namespace

Command add_fleet(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  auto models = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("fleet", "tune models on the machines whose workers share a database");
  command->add_option("MODEL", *models, "ONNX files, or Relay text (.relay)")->required();
  add_compile_flags(*command, *options);
  return {command,
          [=]() -> Status { return fleet(options->database, TRY(sent_flags(*command)), *models); }};
}

}  // namespace collage::tool
