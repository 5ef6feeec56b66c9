#include "cost/postgres_tables.h"

#include <iterator>

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

Status make_tables(PostgresConnection& connection) {
  // What is acknowledged is on the server's disk.
  TRY(
      connection.ask("SELECT set_config('synchronous_commit', 'on', false) "
                     "WHERE current_setting('synchronous_commit') = 'off'"));
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
