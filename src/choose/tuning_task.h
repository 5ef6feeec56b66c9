// TuningTask: one distinct function that candidates come down to, and the targets that may run it.
// Candidates of equal structure share a task and its answer; all targets that may run the same
// function are measured together.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "partition/candidate.h"

namespace collage {

struct TuningTask {
  Function function;  // flat
  std::string text;   // canonical
  std::vector<Target> targets;
  std::vector<std::vector<size_t>> candidates;  // of each target, in order of their addition
  size_t unknown = 0;                           // targets whose costs must be measured
};

// Finds tasks as candidates of one graph are added to it.
class TaskExtraction {
 public:
  explicit TaskExtraction(const DataflowGraph& graph) : graph_(graph) {}

  struct Added {
    Function function;  // the candidate's own: equal to the task's but for names and large weights
    size_t task;
    bool new_target;  // to the task
  };
  // The host's candidates make tasks without targets: their costs are asked for when a cover needs
  // them.
  Result<Added> add(const CandidatePartition& candidate);

  std::vector<TuningTask>& tasks() { return tasks_; }

 private:
  const DataflowGraph& graph_;
  size_t added_ = 0;
  // Targets often propose the same nodes: these are extracted and printed once.
  std::unordered_map<IndexSet, std::pair<Function, size_t>, IndexSetHash> by_nodes_;
  std::unordered_map<std::string, size_t> by_text_;
  std::vector<TuningTask> tasks_;
};

}  // namespace collage
