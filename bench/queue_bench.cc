// What the queue of a fleet costs its server: how many tasks may be taken and given back, and
// leases renewed, a second, by so many workers at once, of 10,000 tasks that wait.
// $COLLAGE_QUEUE is the server's address; bench/fleet_simulation.py starts one.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "cost/task_queue.h"

namespace collage {
namespace {

constexpr int kTasks = 10'000;

std::unique_ptr<TaskQueue> open() {
  const char* address = std::getenv("COLLAGE_QUEUE");
  return TaskQueue::open(address != nullptr ? address : "").value();
}

FleetWorker worker_of(const benchmark::State& state) {
  return {"worker " + std::to_string(state.thread_index()), "zen4", "Zen 4", "machine"};
}

void file_tasks(const benchmark::State&) {
  std::vector<FleetTask> tasks;
  for (int t = 0; t < kTasks; ++t)
    tasks.push_back({"zen4", "Zen 4", std::to_string(t), "/models/" + std::to_string(t), "[]"});
  (void)open()->file(tasks);
}

void take_and_end(benchmark::State& state) {
  const std::unique_ptr<TaskQueue> queue = open();
  const FleetWorker worker = worker_of(state);
  for (auto _ : state) {
    const FleetTask task = queue->take(worker).value().value();
    (void)queue->end(worker, task, TaskEnd::kGivenBack);
  }
  state.SetItemsProcessed(state.iterations());
}

void renew(benchmark::State& state) {
  const std::unique_ptr<TaskQueue> queue = open();
  const FleetWorker worker = worker_of(state);
  const FleetTask task = queue->take(worker).value().value();
  for (auto _ : state) (void)queue->renew(worker, task);
  (void)queue->end(worker, task, TaskEnd::kGivenBack);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(take_and_end)->Setup(file_tasks)->Threads(1)->Threads(16)->Threads(128)->UseRealTime();
BENCHMARK(renew)->Setup(file_tasks)->Threads(1)->Threads(16)->Threads(128)->UseRealTime();

}  // namespace
}  // namespace collage
