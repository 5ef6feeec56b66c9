// A queue of models to tune, beside the costs on a PostgreSQL server: who files tasks and the
// workers that take them know each other by these tables alone (postgres_tables.h).
//
//   waiting -> running -> done, failed, or waiting again; quarantined after the third death
//
// A task whose kernels were built waits again, for workers that only measure among others.
//
// A task is for one fingerprint: a kind of machine and a build of Collage. Whoever takes it owns it
// for the time of a lease, which it renews. Where a lease ran out, the owner is dead: the task
// waits again, and what its former owner says of it later is refused, so a task ends once. After a
// start of the server leases last anew, so that its absence kills nobody. Times are the server's.
//
// Calls that a lost connection cut off are repeated, which changes nothing that they had done.
// kUnavailable: the server is away; a later call may find it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/calibration.h"
#include "cost/postgres_connection.h"

namespace collage {

// What a worker does with tasks: all of it, or compiling the kernels beforehand, or the rest of
// what others built.
enum class FleetRole { kAll, kBuild, kMeasure };

struct FleetWorker {
  std::string id;            // of this process alone
  std::string fingerprint;   // which tasks it takes
  std::string processor;     // for people
  std::string machine = {};  // that its samples are of (postgres_tables.h)
  FleetRole role = FleetRole::kAll;
};

struct FleetTask {
  std::string fingerprint, processor;  // of the workers that may take it
  std::string content;                 // SHA-256 of the model's file
  std::string model;                   // its path, where it was filed
  std::string flags;                   // of `tune`, a JSON list
  std::string id() const;
};

struct TaskState {
  std::string name, error;
  bool has_ended() const { return name != "waiting" && name != "running"; }
};

struct FleetMachine {
  std::string name;
  int64_t samples = 0;
  std::string noise;  // why its samples decide nothing; empty: they do
};

enum class TaskEnd { kDone, kFailed, kGivenBack, kDied, kBuilt };

class TaskQueue {
 public:
  static Result<std::unique_ptr<TaskQueue>> open(const std::string& address,
                                                 double lease_seconds = 60);
  double lease_seconds() const { return lease_; }

  // Tasks that were filed before stay as they are.
  Status file(const std::vector<FleetTask>& tasks);
  Result<std::map<std::string, TaskState>> states(const std::vector<std::string>& ids);
  // A worker of each fingerprint that is present.
  Result<std::vector<FleetWorker>> present();
  // The bytes of a model's file, for workers that do not see it.
  Status keep_model(const std::string& content, const std::string& bytes);
  Result<std::optional<std::string>> model(const std::string& content);
  // How many tasks are in each state, and `workers`: how many are present.
  Result<std::map<std::string, int64_t>> counts();
  // Tasks that ended, and models that no task needs: they may be filed again.
  Status forget_ended();

  // It is present for the time of a lease. The calls below say so too.
  Status announce(const FleetWorker& worker);
  Status leave(const FleetWorker& worker);
  // Keeps what calibrating the worker's machine gave, and judges by it all machines of the kind.
  // What a machine that is noisy from now on may have had a part in is to be done again: tasks that
  // ended or run, and plans that were chosen. Returns why the worker's machine is noisy; empty: it
  // is not.
  Result<std::string> judge(const FleetWorker& worker,
                            const std::vector<CalibrationFigure>& figures);
  // Those that have samples.
  Result<std::vector<FleetMachine>> machines();
  // What noisy machines measured, and that they were.
  Status forget_noisy();
  // The task that has waited for longest of those for the worker's role; none for a noisy machine.
  Result<std::optional<FleetTask>> take(const FleetWorker& worker);
  // False: it is not the worker's any more.
  Result<bool> renew(const FleetWorker& worker, const FleetTask& task);
  Result<bool> end(const FleetWorker& worker, const FleetTask& task, TaskEnd how,
                   const std::string& why = "");

 private:
  TaskQueue(std::string address, double lease) : address_(std::move(address)), lease_(lease) {}
  Status connect();
  Result<PostgresAnswer> ask(const char* sql, const std::vector<std::string>& values = {});
  // Takes tasks away from the dead.
  Status reclaim();
  std::string lease() const { return std::to_string(lease_); }

  const std::string address_;
  const double lease_;
  std::unique_ptr<PostgresConnection> connection_;  // null: to be made anew
};

}  // namespace collage
