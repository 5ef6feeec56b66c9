#include "cost/postgres_tables.h"

#include <unistd.h>

#include <iterator>

#include "base/files.h"

namespace collage {

namespace {

// Step by step: a version of the tables is the number of those that were made.
constexpr const char* kSteps[] = {
    "CREATE TABLE collage_costs("
    "kind text COLLATE \"C\" NOT NULL, key text COLLATE \"C\" NOT NULL, text text NOT NULL, "
    "context text COLLATE \"C\" NOT NULL, value text NOT NULL, seal text NOT NULL, "
    "written text COLLATE \"C\" NOT NULL, used text COLLATE \"C\" NOT NULL, "
    "PRIMARY KEY(kind, key))",
    // Contexts are long, and few: hashed.
    "CREATE INDEX collage_costs_context ON collage_costs(md5(context), kind)",
    "CREATE TABLE collage_tasks("
    "id text PRIMARY KEY, fingerprint text NOT NULL, processor text NOT NULL, "
    "content text NOT NULL, model text NOT NULL, flags text NOT NULL, "
    "state text NOT NULL DEFAULT 'waiting', since timestamptz NOT NULL DEFAULT now(), "
    "owner text NOT NULL DEFAULT '', lease timestamptz NOT NULL DEFAULT now(), "
    "attempts int NOT NULL DEFAULT 0, died int NOT NULL DEFAULT 0, error text NOT NULL DEFAULT '')",
    "CREATE TABLE collage_models(content text PRIMARY KEY, bytes bytea NOT NULL)",
    ("CREATE TABLE collage_workers(id text PRIMARY KEY, fingerprint text NOT NULL, "
     "processor text NOT NULL, seen timestamptz NOT NULL)"),
    // A sample a machine.
    "ALTER TABLE collage_costs ADD COLUMN machine text COLLATE \"C\" NOT NULL DEFAULT '', "
    "DROP CONSTRAINT collage_costs_pkey, ADD PRIMARY KEY(kind, key, machine)",
    ("CREATE TABLE collage_calibrations(machine text NOT NULL, fingerprint text NOT NULL, "
     "kernel text NOT NULL, seconds float8 NOT NULL, spread float8 NOT NULL, disturbed boolean NOT "
     "NULL, "
     "taken timestamptz NOT NULL DEFAULT now(), PRIMARY KEY(machine, fingerprint, kernel))"),
    ("CREATE TABLE collage_noisy(machine text PRIMARY KEY, why text NOT NULL, "
     "since timestamptz NOT NULL DEFAULT now())"),
    ("CREATE VIEW collage_answers AS SELECT DISTINCT ON (kind, key, context) "
     "kind, key, context, text, value, seal, written, used, machine FROM collage_costs c "
     "WHERE machine = current_setting('collage.machine', true) "
     "OR NOT EXISTS (SELECT FROM collage_noisy n WHERE n.machine = c.machine) "
     "ORDER BY kind, key, context, written DESC, machine"),
    // In the order in which tasks are taken; those that run first.
    "CREATE INDEX collage_tasks_open ON collage_tasks(state, fingerprint, since, id) "
    "WHERE state IN ('waiting', 'running')",
    // Whether what measuring it compiles is there.
    "ALTER TABLE collage_tasks ADD COLUMN built boolean NOT NULL DEFAULT false",
};
constexpr int kVersion = std::size(kSteps);

// 0: there are no tables.
Result<int> version_of(PostgresConnection& connection) {
  const Result<PostgresAnswer> answer =
      connection.ask("SELECT version FROM collage_schema ORDER BY version DESC LIMIT 1");
  if (!answer && answer.status().code() == ErrorCode::kUnsupported) return 0;
  TRY(answer.status());
  return answer->rows() == 0 ? 0 : static_cast<int>(answer->number(0, 0));
}

}  // namespace

std::string machine_name() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return "";
  const Result<std::filesystem::path> folder = cache_folder();
  return folder ? host + (" " + folder->string()) : host;
}

Status make_tables(PostgresConnection& connection) {
  // What is acknowledged is on the server's disk.
  TRY(connection.ask(
      "SELECT set_config('collage.machine', $1, false), CASE current_setting('synchronous_commit') "
      "WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END",
      {machine_name()}));
  int version = TRY(version_of(connection));
  if (version < kVersion)
    TRY(connection
            .in_transaction([&]() -> Status {
              TRY(connection.ask("SELECT pg_advisory_xact_lock(hashtext('collage_schema'))"));
              TRY(connection.ask(
                  "CREATE TABLE IF NOT EXISTS collage_schema(version int NOT NULL)"));
              version = TRY(version_of(connection));  // another process may have been faster
              if (version >= kVersion) return {};
              for (int step = version; step < kVersion; ++step) TRY(connection.ask(kSteps[step]));
              TRY(connection.ask("DELETE FROM collage_schema"));
              return connection
                  .ask("INSERT INTO collage_schema VALUES($1::int)", {std::to_string(kVersion)})
                  .status();
            })
            .with_context("making its tables"));
  if (version > kVersion)
    return error(ErrorCode::kUnavailable,
                 "its tables are of version {}, of a newer Collage; this one knows {}", version,
                 kVersion);
  return {};
}

}  // namespace collage
