#include "cost/postgres_storage.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "base/json_fields.h"
#include "base/log.h"
#include "cost/postgres_tables.h"

namespace collage {

namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr const char* kPut =
    "INSERT INTO collage_costs AS c(kind, key, text, context, value, seal, written, used, machine) "
    "SELECT kind, key, text, context, value, seal, CASE written WHEN '' THEN "
    "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') ELSE written END, "
    "used, current_setting('collage.machine') "
    "FROM json_to_recordset($1::json) AS r(kind text, key text, text text, context text, "
    "value text, seal text, written text, used text) "
    "ON CONFLICT(kind, key, machine) DO UPDATE SET text=excluded.text, context=excluded.context, "
    "value=excluded.value, seal=excluded.seal, written=excluded.written, used=excluded.used "
    "WHERE $2 = 'all' OR c.written <= excluded.written";
constexpr const char* kRemove =
    "DELETE FROM collage_costs USING json_to_recordset($1::json) AS r(kind text, key text) "
    "WHERE collage_costs.kind = r.kind AND collage_costs.key = r.key";

// Rows and bytes that travel together, about.
constexpr size_t kMostRows = 1000, kMostBytes = size_t{8} << 20;
constexpr size_t kMostOfContext = 20000;
constexpr int kPauses[] = {0, 100, 400, 1000, 2500};  // ms, before the connection is tried again
constexpr std::chrono::seconds kBetweenTries{5};

// Of an answer's first three columns.
StoredValue value_of(const PostgresAnswer& answer, int row) {
  return {answer.text(row, 0), answer.text(row, 1), answer.text(row, 2)};
}

std::optional<StoredValue> value_of(const std::optional<StoredRow>& row) {
  if (!row) return std::nullopt;
  return StoredValue{row->key, row->value, row->seal};
}

Result<std::filesystem::path> spool_file(const std::string& server) {
  return TRY(cache_folder()) / ("spool-" + sha256_hex(server).substr(0, 16) + ".db");
}

json json_of(const StoredRow& row) {
  return {{"kind", row.kind},       {"key", row.key},     {"text", row.text},
          {"context", row.context}, {"value", row.value}, {"seal", row.seal},
          {"written", row.written}, {"used", row.used}};
}

// In the order of their names, in which all processes lock rows.
template <typename Batch>
Status send_rows(PostgresConnection& connection, const Batch& batch, bool only_newer) {
  json removed = json::array(), rows = json::array();
  size_t bytes = 0;
  const auto put = [&]() -> Status {
    if (rows.empty()) return {};
    TRY(connection.ask(kPut, {json_text(rows), only_newer ? "newer" : "all"}));
    rows = json::array();
    bytes = 0;
    return {};
  };
  for (const auto& [name, row] : batch)
    if (!row) removed.push_back({{"kind", name.first}, {"key", name.second}});
  if (!removed.empty()) TRY(connection.ask(kRemove, {json_text(removed)}));
  for (const auto& [name, row] : batch) {
    if (!row) continue;
    rows.push_back(json_of(*row));
    bytes += row->text.size() + row->value.size();
    if (rows.size() >= kMostRows || bytes >= kMostBytes) TRY(put());
  }
  return put();
}

}  // namespace

bool PostgresStorage::is_address(const std::string& place) {
  return place.starts_with("postgresql://") || place.starts_with("postgres://");
}

Result<std::unique_ptr<PostgresStorage>> PostgresStorage::open(const std::string& address) {
  std::unique_ptr<PostgresStorage> storage(new PostgresStorage(address));
  if (const Status status = storage->connect(); !status.ok())
    return error(ErrorCode::kUnavailable, "cost database {}: {}",
                 storage->name_.empty() ? "on a PostgreSQL server" : storage->name_,
                 status.to_string());
  return storage;
}

PostgresStorage::~PostgresStorage() {
  if (!is_spooled_) return;
  (void)(connection_ == nullptr ? connect() : send_spool());
  if (is_spooled_)
    log::warn("cost database {}: what was not written there is kept in {}, for the next process",
              name_, spool_->name());
}

Status PostgresStorage::connect() {
  std::unique_ptr<PostgresConnection> connection = TRY(PostgresConnection::open(address_));
  if (name_.empty()) name_ = connection->server();
  TRY(make_tables(*connection));
  connection_ = std::move(connection);
  if (const Status sent = send_spool(); !sent.ok()) {
    if (sent.code() != ErrorCode::kUnavailable)
      log::warn("cost database {}: what is kept in the cache folder for it was not written: {}",
                name_, sent.to_string());
    if (connection_->is_lost()) connection_ = nullptr;
  }
  return connection_ != nullptr ? Status() : error(ErrorCode::kUnavailable, "it went away");
}

Status PostgresStorage::on_server(const Work& work) {
  if (!away_.empty() && steady_clock::now() < next_try_)
    return error(ErrorCode::kUnavailable, "{}", away_);
  Status status;
  bool is_second = false;
  for (const int pause : kPauses) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    if (connection_ == nullptr) status = connect();
    if (connection_ != nullptr) {
      status = work(*connection_);
      const bool is_here = !connection_->is_lost();
      if (status.code() != ErrorCode::kUnavailable || (is_here && std::exchange(is_second, true))) {
        away_.clear();
        return status;
      }
      if (!is_here) connection_ = nullptr;
    }
    if (!away_.empty()) break;  // for longer
  }
  away_ = status.to_string();
  next_try_ = steady_clock::now() + kBetweenTries;
  return error(ErrorCode::kUnavailable, "{}", away_);
}

Result<PostgresAnswer> PostgresStorage::ask(const char* sql,
                                            const std::vector<std::string>& values) {
  std::optional<PostgresAnswer> answer;
  TRY(on_server([&](PostgresConnection& connection) -> Status {
    answer = TRY(connection.ask(sql, values));
    return {};
  }));
  return *answer;
}

std::optional<StoredValue> PostgresStorage::find(const RowName& row, const std::string& context) {
  if (batch_)
    if (const auto it = batch_->find(row); it != batch_->end()) return value_of(it->second);
  if (is_spooled_)
    if (std::optional<StoredValue> kept = spool_->find(row, "")) return kept;
  if (!context.empty() && !contexts_.contains(context)) fetch_context(context);
  if (const auto it = fetched_.find(row); it != fetched_.end()) return it->second;
  if (const auto it = contexts_.find(context); it != contexts_.end() && it->second)
    return std::nullopt;
  Result<PostgresAnswer> answer =
      ask("SELECT key, value, seal FROM collage_answers WHERE kind=$1 AND key=$2",
          {row.first, row.second});
  if (!answer || answer->rows() == 0) return std::nullopt;
  return value_of(*answer, 0);
}

void PostgresStorage::fetch_context(const std::string& context) {
  const Result<PostgresAnswer> answer =
      ask("SELECT key, value, seal, kind FROM collage_answers "
          "WHERE md5(context) = md5($1) AND context = $1 LIMIT $2::int",
          {context, std::to_string(kMostOfContext)});
  if (!answer) return;
  contexts_[context] = static_cast<size_t>(answer->rows()) < kMostOfContext;
  for (int row = 0; row < answer->rows(); ++row)
    fetched_.try_emplace({answer->text(row, 3), answer->text(row, 0)}, value_of(*answer, row));
}

void PostgresStorage::expect(const std::vector<std::string>& kinds,
                             const std::vector<std::string>& keys) {
  json wanted = json::array();
  for (const std::string& key : keys)
    if (!fetched_.contains({kinds[0], key})) wanted.push_back(key);
  if (wanted.empty()) return;
  const Result<PostgresAnswer> answer =
      ask("SELECT key, value, seal, kind FROM collage_answers "
          "WHERE kind = ANY(ARRAY(SELECT json_array_elements_text($1::json))) "
          "AND key = ANY(ARRAY(SELECT json_array_elements_text($2::json)))",
          {json_text(json(kinds)), json_text(wanted)});
  if (!answer) return;
  for (int row = 0; row < answer->rows(); ++row)
    fetched_.try_emplace({answer->text(row, 3), answer->text(row, 0)}, value_of(*answer, row));
  for (const std::string& kind : kinds)
    for (const std::string& key : keys) fetched_.try_emplace({kind, key}, std::nullopt);
}

std::vector<StoredValue> PostgresStorage::values(const std::string& kind,
                                                 const std::optional<std::string>& context,
                                                 size_t most) {
  const RowName name = {kind, context.value_or("any")};
  if (const auto it = listed_.find(name); it != listed_.end()) return it->second;
  const char* sql = context ? "SELECT key, value, seal FROM collage_answers WHERE kind=$1 AND "
                              "md5(context) = md5($3) AND context = $3 "
                              "ORDER BY written DESC, key LIMIT $2::int"
                            : "SELECT key, value, seal FROM collage_answers WHERE kind=$1 "
                              "LIMIT $2::int";
  std::vector<std::string> asked = {kind, std::to_string(most)};
  if (context) asked.push_back(*context);
  std::vector<StoredValue> found;
  const Result<PostgresAnswer> answer = ask(sql, asked);
  if (!answer) return found;
  for (int row = 0; row < answer->rows(); ++row) found.push_back(value_of(*answer, row));
  return listed_[name] = found;
}

Status PostgresStorage::for_each(const std::function<Status(const StoredRow&)>& visit) {
  constexpr size_t kAtOnce = 500;
  RowName last;
  while (true) {
    const PostgresAnswer answer =
        TRY(ask("SELECT kind, key, text, context, value, written, used, seal FROM collage_answers "
                "WHERE (kind, key) > ($1, $2) ORDER BY kind, key LIMIT $3::int",
                {last.first, last.second, std::to_string(kAtOnce)})
                .with_context(name_));
    for (int r = 0; r < answer.rows(); ++r) {
      const auto text = [&](int column) { return answer.text(r, column); };
      TRY(visit({text(0), text(1), text(2), text(3), text(4), text(5), text(6), text(7)}));
      last = {text(0), text(1)};
    }
    if (static_cast<size_t>(answer.rows()) < kAtOnce) return {};
  }
}

Status PostgresStorage::put(const StoredRow& row) {
  const RowName name = {row.kind, row.key};
  if (!batch_) return write({{name, row}});
  (*batch_)[name] = row;
  return {};
}

Status PostgresStorage::remove(const RowName& row) {
  if (!batch_) return write({{row, std::nullopt}});
  (*batch_)[row] = std::nullopt;
  return {};
}

Status PostgresStorage::begin() {
  batch_.emplace();
  return {};
}

Status PostgresStorage::commit() {
  const Batch batch = std::exchange(batch_, std::nullopt).value_or(Batch());
  return batch.empty() ? Status() : write(batch);
}

Status PostgresStorage::write(const Batch& batch) {
  Status status = on_server([&](PostgresConnection& connection) -> Status {
    // One row is a transaction by itself.
    if (batch.size() == 1) return send_rows(connection, batch, false);
    return connection.in_transaction([&] { return send_rows(connection, batch, false); });
  });
  if (status.code() == ErrorCode::kUnavailable) status = spool(batch, status);
  TRY(std::move(status));
  for (const auto& [name, row] : batch) {
    const std::string& kind = name.first;
    std::erase_if(listed_, [&](const auto& list) { return list.first.first == kind; });
    if (fetched_.contains(name) || (row && contexts_.contains(row->context)))
      fetched_[name] = value_of(row);
  }
  return {};
}

Result<int64_t> PostgresStorage::used_bytes() {
  Result<PostgresAnswer> answer = ask("SELECT pg_total_relation_size('collage_costs')", {});
  if (!answer) return std::move(answer).status().with_context(name_);
  return answer->number(0, 0);
}

Status PostgresStorage::open_spool() {
  if (spool_ != nullptr) return {};
  const std::filesystem::path file = TRY(spool_file(name_));
  spool_ = TRY(SqliteStorage::open(file, /*create=*/true).with_context(file.string()));
  return {};
}

Status PostgresStorage::spool(const Batch& batch, const Status& why) {
  for (const auto& [name, row] : batch)
    if (!row) return why;  // what is to be removed is not for later
  TRY(open_spool().with_context(why.to_string()));
  if (!std::exchange(told_of_spool_, true))
    log::warn("cost database {}: {}; what is measured is kept in {} until it answers", name_,
              why.to_string(), spool_->name());
  TRY(spool_->begin());
  for (const auto& [name, row] : batch)
    if (const Status status = spool_->put(*row); !status.ok()) {
      spool_->roll_back();
      return status;
    }
  TRY(spool_->commit());
  is_spooled_ = true;
  return {};
}

Status PostgresStorage::send_spool() {
  std::error_code ec;
  const Result<std::filesystem::path> file = spool_file(name_);
  if (!file || !std::filesystem::exists(*file, ec)) return {};
  TRY(open_spool());
  Batch batch;
  const auto read = [&] {
    batch.clear();
    return spool_->for_each([&](const StoredRow& row) {
      batch[{row.kind, row.key}] = row;
      return Status();
    });
  };
  TRY(read());
  is_spooled_ = !batch.empty();
  if (batch.empty()) return {};
  // Other processes wait, that what they add meanwhile is not removed unsent.
  TRY(spool_->begin());
  Status status = read();
  if (status.ok())
    status = connection_->in_transaction([&] { return send_rows(*connection_, batch, true); });
  for (auto it = batch.begin(); status.ok() && it != batch.end(); ++it)
    status = spool_->remove(it->first);
  if (status.ok()) status = spool_->commit();
  if (!status.ok()) {
    spool_->roll_back();
    return status;
  }
  is_spooled_ = false;
  log::info("cost database {}: {} rows of the spool were written", name_, batch.size());
  return {};
}

}  // namespace collage
