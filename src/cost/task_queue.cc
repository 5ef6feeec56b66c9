#include "cost/task_queue.h"

#include "base/hash.h"
#include "base/hexadecimal.h"
#include "base/json_fields.h"
#include "cost/postgres_tables.h"

namespace collage {

namespace {

using nlohmann::json;

// A worker's third death is the task's end.
constexpr const char* kDied =
    "died = died + 1, state = CASE WHEN died >= 2 THEN 'quarantined' ELSE 'waiting' END";

constexpr const char* kChanges[] = {"state = 'done'", "state = 'failed'", "state = 'waiting'",
                                    kDied,
                                    "state = 'waiting', built = true"};  // in the order of TaskEnd

// What a worker takes, in the order of FleetRole.
constexpr const char* kTakes[] = {"true", "NOT built", "built"};

constexpr const char* kKeepFigures =
    "INSERT INTO collage_calibrations SELECT $1, $2, r.* FROM json_to_recordset($3::json) "
    "AS r(kernel text, seconds float8, spread float8, disturbed boolean) "
    "ON CONFLICT(machine, fingerprint, kernel) DO UPDATE SET seconds = excluded.seconds, "
    "spread = excluded.spread, disturbed = excluded.disturbed, taken = now()";

// Of a fingerprint: the machines that have become noisy.
constexpr const char* kFindNoisy =
    "WITH counted AS (SELECT * FROM collage_calibrations WHERE fingerprint = $1 "
    "AND machine NOT IN (SELECT machine FROM collage_noisy)), "
    "of_kind AS (SELECT kernel, count(*) AS machines, percentile_cont(0.5) WITHIN GROUP "
    "(ORDER BY seconds) AS middle FROM counted WHERE NOT disturbed GROUP BY kernel) "
    "INSERT INTO collage_noisy SELECT machine, string_agg(CASE WHEN spread > $2::float8 "
    "THEN format('%s differs by %s times between repeats', kernel, round(spread::numeric, 2)) "
    "ELSE format('%s takes %s times the median of its kind', kernel, "
    "round((seconds / middle)::numeric, 2)) END, '; ' ORDER BY kernel) "
    "FROM counted LEFT JOIN of_kind USING (kernel) WHERE spread > $2::float8 OR (NOT disturbed "
    "AND machines >= 3 AND greatest(seconds / middle, middle / seconds) > $3::float8) "
    "GROUP BY machine ON CONFLICT DO NOTHING RETURNING machine";

}  // namespace

std::string FleetTask::id() const {
  return sha256_hex(fingerprint + "\n" + content + "\n" + flags);
}

Result<std::unique_ptr<TaskQueue>> TaskQueue::open(const std::string& address,
                                                   double lease_seconds) {
  std::unique_ptr<TaskQueue> queue(new TaskQueue(address, lease_seconds));
  TRY(queue->connect());
  return queue;
}

Status TaskQueue::connect() {
  std::unique_ptr<PostgresConnection> connection =
      TRY(PostgresConnection::open(address_).with_context("cost database on a PostgreSQL server"));
  TRY(make_tables(*connection).with_context("cost database " + connection->server()));
  connection_ = std::move(connection);
  return {};
}

Result<PostgresAnswer> TaskQueue::ask(const char* sql, const std::vector<std::string>& values) {
  for (bool is_first = true;; is_first = false) {
    if (connection_ == nullptr) TRY(connect());
    Result<PostgresAnswer> answer = connection_->ask(sql, values);
    if (answer || !connection_->is_lost()) return answer;
    connection_ = nullptr;
    if (!is_first) return answer;
  }
}

Status TaskQueue::file(const std::vector<FleetTask>& tasks) {
  json rows = json::array();
  for (const FleetTask& task : tasks)
    rows.push_back({{"id", task.id()},
                    {"fingerprint", task.fingerprint},
                    {"processor", task.processor},
                    {"content", task.content},
                    {"model", task.model},
                    {"flags", task.flags}});
  // In one order, in which all processes lock them.
  return ask("INSERT INTO collage_tasks SELECT r.* FROM json_to_recordset($1::json) "
             "AS r(id text, fingerprint text, processor text, content text, model text, flags "
             "text) "
             "ORDER BY id ON CONFLICT(id) DO NOTHING",
             {json_text(rows)})
      .status();
}

Result<std::map<std::string, TaskState>> TaskQueue::states(const std::vector<std::string>& ids) {
  TRY(reclaim());
  const PostgresAnswer answer =
      TRY(ask("SELECT id, state, error FROM collage_tasks "
              "WHERE id = ANY(ARRAY(SELECT json_array_elements_text($1::json)))",
              {json_text(json(ids))}));
  std::map<std::string, TaskState> found;
  for (int row = 0; row < answer.rows(); ++row)
    found[answer.text(row, 0)] = {answer.text(row, 1), answer.text(row, 2)};
  return found;
}

Result<std::vector<FleetWorker>> TaskQueue::present() {
  const PostgresAnswer answer =
      TRY(ask("SELECT min(id), fingerprint, min(processor) FROM collage_workers "
              "WHERE seen > now() - make_interval(secs => $1::float8) GROUP BY fingerprint",
              {lease()}));
  std::vector<FleetWorker> workers;
  for (int row = 0; row < answer.rows(); ++row)
    workers.push_back({answer.text(row, 0), answer.text(row, 1), answer.text(row, 2)});
  return workers;
}

Status TaskQueue::keep_model(const std::string& content, const std::string& bytes) {
  if (TRY(ask("SELECT 1 FROM collage_models WHERE content = $1", {content})).rows() > 0) return {};
  return ask("INSERT INTO collage_models VALUES($1, decode($2, 'hex')) ON CONFLICT DO NOTHING",
             {content, hexadecimal(bytes.data(), bytes.size())})
      .status();
}

Result<std::optional<std::string>> TaskQueue::model(const std::string& content) {
  const PostgresAnswer answer =
      TRY(ask("SELECT encode(bytes, 'hex') FROM collage_models WHERE content = $1", {content}));
  return answer.rows() == 0 ? std::nullopt : from_hexadecimal(answer.text(0, 0));
}

Result<std::map<std::string, int64_t>> TaskQueue::counts() {
  const PostgresAnswer answer =
      TRY(ask("SELECT state, count(*) FROM collage_tasks GROUP BY state UNION ALL "
              "SELECT 'workers', count(*) FROM collage_workers "
              "WHERE seen > now() - make_interval(secs => $1::float8)",
              {lease()}));
  std::map<std::string, int64_t> found;
  for (int row = 0; row < answer.rows(); ++row) found[answer.text(row, 0)] = answer.number(row, 1);
  return found;
}

Status TaskQueue::forget_ended() {
  TRY(ask("DELETE FROM collage_tasks WHERE state NOT IN ('waiting', 'running')"));
  TRY(ask("DELETE FROM collage_workers WHERE seen < now() - interval '1 day'"));
  return ask("DELETE FROM collage_models m WHERE NOT EXISTS "
             "(SELECT FROM collage_tasks WHERE content = m.content)")
      .status();
}

Status TaskQueue::announce(const FleetWorker& worker) {
  return ask("INSERT INTO collage_workers SELECT $1, $2, $3, now() WHERE NOT EXISTS "
             "(SELECT FROM collage_workers WHERE id = $1 AND "
             "seen > now() - make_interval(secs => $4::float8 / 6)) "
             "ON CONFLICT(id) DO UPDATE SET seen = now()",
             {worker.id, worker.fingerprint, worker.processor, lease()})
      .status();
}

Status TaskQueue::leave(const FleetWorker& worker) {
  return ask("DELETE FROM collage_workers WHERE id = $1", {worker.id}).status();
}

Result<std::string> TaskQueue::judge(const FleetWorker& worker,
                                     const std::vector<CalibrationFigure>& figures) {
  json rows = json::array();
  for (const CalibrationFigure& figure : figures)
    rows.push_back({{"kernel", figure.kernel},
                    {"seconds", figure.seconds},
                    {"spread", figure.spread},
                    {"disturbed", figure.disturbed}});
  if (connection_ == nullptr) TRY(connect());
  const Status judged = connection_->in_transaction([&]() -> Status {
    TRY(connection_->ask("SELECT pg_advisory_xact_lock(hashtext('collage_noisy'))"));
    TRY(connection_->ask(kKeepFigures, {worker.machine, worker.fingerprint, json_text(rows)}));
    const PostgresAnswer noisy = TRY(connection_->ask(
        kFindNoisy, {worker.fingerprint, std::to_string(kMostSpread), std::to_string(kMostApart)}));
    if (noisy.rows() == 0) return {};
    TRY(connection_->ask(
        "UPDATE collage_tasks SET state = 'waiting', since = now(), owner = '', error = '' "
        "WHERE fingerprint = $1 AND state IN ('done', 'running')",
        {worker.fingerprint}));
    return connection_
        ->ask(
            "DELETE FROM collage_costs WHERE kind = 'plan' AND starts_with(context, $1 || E'\\n')",
            {worker.processor})
        .status();
  });
  if (connection_->is_lost()) connection_ = nullptr;
  TRY(judged);
  const PostgresAnswer answer =
      TRY(ask("SELECT why FROM collage_noisy WHERE machine = $1", {worker.machine}));
  return answer.rows() == 0 ? "" : answer.text(0, 0);
}

Result<std::vector<FleetMachine>> TaskQueue::machines() {
  const PostgresAnswer answer =
      TRY(ask("SELECT c.machine, count(*), coalesce(max(n.why), '') FROM collage_costs c "
              "LEFT JOIN collage_noisy n USING (machine) GROUP BY c.machine ORDER BY c.machine"));
  std::vector<FleetMachine> found;
  for (int row = 0; row < answer.rows(); ++row)
    found.push_back({answer.text(row, 0), answer.number(row, 1), answer.text(row, 2)});
  return found;
}

Status TaskQueue::forget_noisy() {
  for (const char* table : {"collage_costs", "collage_calibrations"})
    TRY(ask(
        fmt::format("DELETE FROM {} WHERE machine IN (SELECT machine FROM collage_noisy)", table)
            .c_str()));
  return ask("DELETE FROM collage_noisy").status();
}

Status TaskQueue::reclaim() {
  static const std::string sql = fmt::format(
      "UPDATE collage_tasks SET {}, since = now(), owner = '', "
      "error = 'the worker ' || owner || ' fell silent' WHERE id IN (SELECT id FROM collage_tasks "
      "WHERE state = 'running' AND greatest(lease, pg_postmaster_start_time() "
      "+ make_interval(secs => $1::float8)) < now() FOR UPDATE SKIP LOCKED)",
      kDied);
  return ask(sql.c_str(), {lease()}).status();
}

Result<std::optional<FleetTask>> TaskQueue::take(const FleetWorker& worker) {
  TRY(announce(worker));
  TRY(reclaim());
  // One that runs already was taken by a call whose answer was lost; 'running' comes first.
  const std::string sql = fmt::format(
      "UPDATE collage_tasks SET state = 'running', owner = $2, since = now(), "
      "lease = now() + make_interval(secs => $3::float8), attempts = attempts + 1 "
      "WHERE id = (SELECT id FROM collage_tasks WHERE fingerprint = $1 AND "
      "((state = 'waiting' AND {}) OR (state = 'running' AND owner = $2)) "
      "AND NOT EXISTS (SELECT FROM collage_noisy WHERE machine = $4) "
      "ORDER BY state, since, id LIMIT 1 FOR UPDATE SKIP LOCKED) "
      "RETURNING fingerprint, processor, content, model, flags",
      kTakes[static_cast<int>(worker.role)]);
  const PostgresAnswer answer =
      TRY(ask(sql.c_str(), {worker.fingerprint, worker.id, lease(), worker.machine}));
  if (answer.rows() == 0) return std::optional<FleetTask>();
  const auto text = [&](int column) { return answer.text(0, column); };
  return std::optional(FleetTask{text(0), text(1), text(2), text(3), text(4)});
}

Result<bool> TaskQueue::renew(const FleetWorker& worker, const FleetTask& task) {
  TRY(announce(worker));
  return TRY(ask("UPDATE collage_tasks SET lease = now() + make_interval(secs => $3::float8) "
                 "WHERE id = $1 AND owner = $2 AND state = 'running' RETURNING 1",
                 {task.id(), worker.id, lease()}))
             .rows() > 0;
}

Result<bool> TaskQueue::end(const FleetWorker& worker, const FleetTask& task, TaskEnd how,
                            const std::string& why) {
  const std::string sql = fmt::format(
      "UPDATE collage_tasks SET {}, since = now(), error = $3::json #>> '{{}}' "
      "WHERE id = $1 AND owner = $2 AND state = 'running' RETURNING 1",
      kChanges[static_cast<int>(how)]);
  if (TRY(ask(sql.c_str(), {task.id(), worker.id, json_text(json(why))})).rows() > 0) return true;
  // Or a call whose answer was lost did it.
  return TRY(ask("SELECT 1 FROM collage_tasks WHERE id = $1 AND owner = $2 AND state <> 'running'",
                 {task.id(), worker.id}))
             .rows() > 0;
}

}  // namespace collage
