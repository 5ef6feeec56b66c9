#include "cost/task_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "cost/postgres_server.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr double kShort = 1e-3;  // seconds; the server has run for longer

const FleetWorker kFirst{"first", "zen4", "Zen 4"}, kSecond{"second", "zen4", "Zen 4"},
    kOther{"other", "lake", "Sapphire Rapids"};

FleetTask task_of(const std::string& content, const FleetWorker& worker = kFirst) {
  return {worker.fingerprint, worker.processor, content, "/models/" + content, "[]"};
}

class Queue : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<testing::PostgresServer>> server = testing::PostgresServer::start();
    if (!server) GTEST_SKIP() << "no server: " << server.status().to_string();
    server_ = std::move(server).value();
  }
  std::unique_ptr<TaskQueue> open(double lease_seconds = 60) {
    Result<std::unique_ptr<TaskQueue>> queue = TaskQueue::open(server_->address(), lease_seconds);
    EXPECT_TRUE(queue.ok()) << queue.status().to_string();
    return std::move(queue).value();
  }
  std::string ask(const std::string& statement) {
    const Result<std::string> answer = server_->ask({statement});
    EXPECT_TRUE(answer.ok()) << answer.status().to_string();
    return answer ? *answer : "";
  }
  // As if a long time had passed.
  void end_leases() { ask("UPDATE collage_tasks SET lease = now() - interval '1 hour'"); }
  static std::optional<FleetTask> take(TaskQueue& queue, const FleetWorker& worker) {
    Result<std::optional<FleetTask>> task = queue.take(worker);
    EXPECT_TRUE(task.ok()) << task.status().to_string();
    return task ? *task : std::nullopt;
  }
  static TaskState state_of(TaskQueue& queue, const FleetTask& task) {
    return (*queue.states({task.id()}))[task.id()];
  }

  std::unique_ptr<testing::PostgresServer> server_;
};

TEST_F(Queue, NoTwoHoldATask) {
  constexpr int kTasks = 60, kTakers = 4;
  std::vector<FleetTask> tasks;
  for (int t = 0; t < kTasks; ++t) tasks.push_back(task_of(std::to_string(t)));
  ASSERT_TRUE(open()->file(tasks).ok());
  std::vector<std::vector<std::string>> taken(kTakers);
  std::vector<std::thread> takers;
  for (int t = 0; t < kTakers; ++t)
    takers.emplace_back([&, t] {
      const std::unique_ptr<TaskQueue> queue = open();
      const FleetWorker worker{"taker " + std::to_string(t), "zen4", "Zen 4"};
      while (const std::optional<FleetTask> task = take(*queue, worker)) {
        taken[t].push_back(task->content);
        EXPECT_TRUE(*queue->end(worker, *task, TaskEnd::kDone));
      }
    });
  for (std::thread& taker : takers) taker.join();
  std::multiset<std::string> all;
  for (const auto& some : taken) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), kTasks);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), kTasks);
  EXPECT_EQ(ask("SELECT max(attempts) FROM collage_tasks"), "1");
}

TEST_F(Queue, ATaskIsForItsFingerprint) {
  const std::unique_ptr<TaskQueue> queue = open();
  ASSERT_TRUE(queue->file({task_of("net", kOther)}).ok());
  EXPECT_FALSE(take(*queue, kFirst).has_value());
  const std::optional<FleetTask> taken = take(*queue, kOther);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->id(), task_of("net", kOther).id());
  EXPECT_EQ(taken->model, "/models/net");
  EXPECT_NE(taken->id(), task_of("net").id());
}

TEST_F(Queue, WhoseLeaseRanOutIsNotHeardAnyMore) {
  const std::unique_ptr<TaskQueue> queue = open(kShort);
  const FleetTask task = task_of("net");
  ASSERT_TRUE(queue->file({task}).ok());
  ASSERT_TRUE(take(*queue, kFirst).has_value());
  end_leases();
  EXPECT_TRUE(*queue->renew(kFirst, task)) << "nobody took it";
  end_leases();
  ASSERT_TRUE(take(*queue, kSecond).has_value());
  EXPECT_FALSE(*queue->renew(kFirst, task));
  EXPECT_FALSE(*queue->end(kFirst, task, TaskEnd::kFailed, "late"));
  EXPECT_EQ(state_of(*open(), task).name, "running");
  EXPECT_TRUE(*queue->end(kSecond, task, TaskEnd::kDone));
  EXPECT_TRUE(*queue->end(kSecond, task, TaskEnd::kDone)) << "a repeated call";
  EXPECT_FALSE(*queue->end(kFirst, task, TaskEnd::kFailed, "late"));
  EXPECT_EQ(state_of(*queue, task).name, "done");
  EXPECT_EQ(ask("SELECT attempts FROM collage_tasks"), "2");
}

TEST_F(Queue, ALeaseHoldsWhileItIsRenewedAndAnewAfterAStartOfTheServer) {
  const std::unique_ptr<TaskQueue> queue = open();
  const FleetTask task = task_of("net");
  ASSERT_TRUE(queue->file({task}).ok());
  ASSERT_TRUE(take(*queue, kFirst).has_value());
  EXPECT_FALSE(take(*queue, kSecond).has_value());
  end_leases();
  EXPECT_FALSE(take(*queue, kSecond).has_value()) << "the server was away, not the worker";
  EXPECT_TRUE(*queue->renew(kFirst, task));
  EXPECT_FALSE(take(*open(kShort), kSecond).has_value()) << "renewed";
}

TEST_F(Queue, ThreeDeathsAreTheEnd) {
  const std::unique_ptr<TaskQueue> queue = open(kShort);
  const FleetTask task = task_of("net"), elsewhere = task_of("net", kOther);
  ASSERT_TRUE(queue->file({task, elsewhere}).ok());
  for (int n = 0; n < 4; ++n) {
    ASSERT_TRUE(take(*queue, kFirst).has_value());
    EXPECT_TRUE(*queue->end(kFirst, task, TaskEnd::kGivenBack));
  }
  ASSERT_TRUE(take(*queue, kFirst).has_value());
  EXPECT_TRUE(*queue->end(kFirst, task, TaskEnd::kDied, "signal 11"));
  EXPECT_EQ(state_of(*queue, task).name, "waiting");
  ASSERT_TRUE(take(*queue, kSecond).has_value());
  end_leases();
  EXPECT_EQ(state_of(*queue, task).name, "waiting");
  EXPECT_EQ(state_of(*queue, task).error, "the worker second fell silent");
  ASSERT_TRUE(take(*queue, kFirst).has_value());
  EXPECT_TRUE(*queue->end(kFirst, task, TaskEnd::kDied, "it's \"signal\" \\ 9\xff"));
  EXPECT_EQ(state_of(*queue, task).name, "quarantined");
  EXPECT_THAT(state_of(*queue, task).error, HasSubstr("it's \"signal\" \\ 9"));
  EXPECT_FALSE(take(*queue, kFirst).has_value());
  EXPECT_TRUE(take(*queue, kOther).has_value());
}

TEST_F(Queue, KernelsAreBuiltBeforeTheyAreMeasuredAlone) {
  const std::unique_ptr<TaskQueue> queue = open();
  FleetWorker builder = kFirst, measurer = kSecond;
  builder.role = FleetRole::kBuild;
  measurer.role = FleetRole::kMeasure;
  const FleetTask task = task_of("net"), next = task_of("next");
  ASSERT_TRUE(queue->file({task}).ok());
  EXPECT_FALSE(take(*queue, measurer).has_value()) << "nobody built it";
  ASSERT_TRUE(take(*queue, builder).has_value());
  EXPECT_TRUE(*queue->end(builder, task, TaskEnd::kBuilt));
  EXPECT_EQ(state_of(*queue, task).name, "waiting");
  EXPECT_FALSE(take(*queue, builder).has_value()) << "it was built";
  ASSERT_TRUE(take(*queue, measurer).has_value());
  EXPECT_TRUE(*queue->end(measurer, task, TaskEnd::kGivenBack));
  EXPECT_TRUE(take(*queue, measurer).has_value()) << "it stays built";
  EXPECT_TRUE(*queue->end(measurer, task, TaskEnd::kDone));
  // Who does both waits for nobody.
  ASSERT_TRUE(queue->file({next}).ok());
  ASSERT_TRUE(take(*queue, kFirst).has_value());
  EXPECT_TRUE(*queue->end(kFirst, next, TaskEnd::kDone));
  EXPECT_EQ(state_of(*queue, next).name, "done");
}

std::vector<CalibrationFigure> figures(double seconds, double spread = 1.01,
                                       bool disturbed = false) {
  return {{"dense", seconds, spread, disturbed}, {"add", 1e-3, 1.0, disturbed}};
}

FleetWorker on_machine(const std::string& machine, const FleetWorker& kind = kFirst) {
  return {"worker of " + machine, kind.fingerprint, kind.processor, machine};
}

TEST_F(Queue, AMachineApartFromItsKindIsNoisy) {
  const std::unique_ptr<TaskQueue> queue = open();
  const FleetWorker liar = on_machine("liar");
  const FleetTask done = task_of("a"), elsewhere = task_of("a", kOther);
  ASSERT_TRUE(queue->file({done, task_of("b"), elsewhere}).ok());
  ask("INSERT INTO collage_costs(kind, key, text, context, value, seal, written, used) VALUES"
      "('plan', 'k', '', E'Zen 4\\nmade', '', '', '', ''), "
      "('plan', 'l', '', E'Zen 42\\nmade', '', '', '', '')");
  // Nobody knows which of two is right.
  EXPECT_EQ(*queue->judge(liar, figures(0.4e-3)), "");
  EXPECT_EQ(*queue->judge(on_machine("a"), figures(1e-3)), "");
  ASSERT_EQ(*queue->judge(liar, figures(0.4e-3)), "");
  EXPECT_TRUE(*queue->end(liar, *take(*queue, liar), TaskEnd::kDone));
  EXPECT_TRUE(*queue->end(kOther, *take(*queue, kOther), TaskEnd::kDone));
  EXPECT_EQ(*queue->judge(on_machine("other kind", kOther), figures(1e-3)), "");
  EXPECT_EQ(*queue->judge(on_machine("busy"), figures(3e-3, 1.4, true)), "");
  ASSERT_TRUE(take(*queue, liar).has_value());
  EXPECT_EQ(*queue->judge(on_machine("b"), figures(1.1e-3)), "");
  EXPECT_THAT(*queue->judge(liar, figures(1e-3)), HasSubstr("dense takes 0.40 times the median"))
      << "once is enough";
  EXPECT_EQ(*queue->judge(on_machine("a"), figures(1e-3)), "");
  // What it ended, and what it runs, is for others.
  EXPECT_EQ(state_of(*queue, done).name, "waiting");
  EXPECT_FALSE(take(*queue, liar).has_value());
  for (int n = 0; n < 2; ++n) {
    const std::optional<FleetTask> taken = take(*queue, on_machine("a"));
    ASSERT_TRUE(taken.has_value());
    EXPECT_TRUE(*queue->end(on_machine("a"), *taken, TaskEnd::kDone));
  }
  EXPECT_EQ(state_of(*queue, elsewhere).name, "done") << "of another kind";
  EXPECT_EQ(ask("SELECT string_agg(key, ' ') FROM collage_costs"), "l") << "plans of that kind";
  ASSERT_TRUE(queue->forget_noisy().ok());
  EXPECT_EQ(*queue->judge(liar, figures(1e-3)), "");
}

TEST_F(Queue, AMachineThatDisagreesWithItselfIsNoisy) {
  const std::unique_ptr<TaskQueue> queue = open();
  EXPECT_EQ(*queue->judge(on_machine("steady"), figures(1e-3, 1.4)), "");
  EXPECT_THAT(*queue->judge(on_machine("shaky"), figures(1e-3, 2)),
              HasSubstr("dense differs by 2.00 times"));
  ask("INSERT INTO collage_costs(kind, key, text, context, value, seal, written, used, machine) "
      "VALUES('function', 'k', '', '', '', '', '', '', 'shaky'), "
      "('function', 'k', '', '', '', '', '', '', 'steady')");
  const std::vector<FleetMachine> machines = *queue->machines();
  ASSERT_EQ(machines.size(), 2);
  EXPECT_EQ(machines[0].name + " " + std::to_string(machines[0].samples), "shaky 1");
  EXPECT_THAT(machines[0].noise, HasSubstr("differs"));
  EXPECT_EQ(machines[1].noise, "");
  ASSERT_TRUE(queue->forget_noisy().ok());
  EXPECT_EQ(queue->machines()->size(), 1);
}

TEST_F(Queue, WhatEndedStaysUntilItIsForgotten) {
  const std::unique_ptr<TaskQueue> queue = open();
  const FleetTask done = task_of("a"), failed = task_of("b"), waiting = task_of("c");
  const std::string bytes("\0\x01\xff'\\x", 6);
  ASSERT_TRUE(queue->keep_model("a", bytes).ok());
  ASSERT_TRUE(queue->keep_model("c", bytes).ok());
  EXPECT_EQ(*queue->model("a"), bytes);
  EXPECT_FALSE(queue->model("b")->has_value());
  ASSERT_TRUE(queue->announce(kFirst).ok());
  ASSERT_TRUE(queue->announce(kSecond).ok());
  ASSERT_TRUE(queue->announce(kOther).ok());
  EXPECT_EQ(queue->present()->size(), 2) << "fingerprints";
  ASSERT_TRUE(queue->leave(kOther).ok());
  EXPECT_EQ(queue->present()->size(), 1);
  ASSERT_TRUE(queue->file({done, failed}).ok());
  for (const TaskEnd how : {TaskEnd::kDone, TaskEnd::kFailed})
    EXPECT_TRUE(*queue->end(kFirst, *take(*queue, kFirst), how, "a line"));
  ASSERT_TRUE(queue->file({done, failed, waiting}).ok());
  EXPECT_EQ(*queue->counts(), (std::map<std::string, int64_t>{
                                  {"done", 1}, {"failed", 1}, {"waiting", 1}, {"workers", 2}}));
  ASSERT_TRUE(queue->forget_ended().ok());
  EXPECT_EQ(*queue->counts(), (std::map<std::string, int64_t>{{"waiting", 1}, {"workers", 2}}));
  EXPECT_FALSE(queue->model("a")->has_value());
  EXPECT_TRUE(queue->model("c")->has_value());
}

TEST_F(Queue, ALostConnectionIsMadeAnew) {
  const std::unique_ptr<TaskQueue> queue = open();
  ASSERT_TRUE(queue->file({task_of("a"), task_of("b")}).ok());
  const std::optional<FleetTask> taken = take(*queue, kFirst);
  ASSERT_TRUE(taken.has_value());
  ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'collage' "
      "AND pid != pg_backend_pid()");
  const std::optional<FleetTask> again = take(*queue, kFirst);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->id(), taken->id()) << "the answer of the first call may have been lost";
  server_->crash();
  EXPECT_EQ(queue->renew(kFirst, *taken).status().code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(server_->start_again().ok());
  EXPECT_TRUE(*queue->end(kFirst, *taken, TaskEnd::kDone));
  EXPECT_EQ(take(*queue, kSecond)->id(), task_of(taken->content == "a" ? "b" : "a").id());
}

}  // namespace
}  // namespace collage
