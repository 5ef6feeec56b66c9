#include "cost/sqlite_storage.h"

#include <sqlite3.h>

namespace collage {

namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyMs = 60 * 1000;

class Statement {
 public:
  // `texts` are ?1, ?2 …
  template <typename... Texts>
  explicit Statement(sqlite3* database, const char* sql, const Texts&... texts) {
    sqlite3_prepare_v2(database, sql, -1, &handle_, nullptr);
    bind(texts...);
  }
  ~Statement() { finalize(); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  bool ready() const { return handle_ != nullptr; }
  template <typename... Texts>
  void bind(const Texts&... texts) {
    if (!ready()) return;
    [[maybe_unused]] int position = 0;
    (sqlite3_bind_text(handle_, ++position, texts.data(), static_cast<int>(texts.size()),
                       SQLITE_TRANSIENT),
     ...);
  }
  bool row() { return ready() && sqlite3_step(handle_) == SQLITE_ROW; }
  bool done() { return ready() && sqlite3_step(handle_) == SQLITE_DONE; }
  void reset() { sqlite3_reset(handle_); }
  // Ends the statement; false when it had failed.
  bool finalize() {
    bool ok = handle_ != nullptr && sqlite3_finalize(handle_) == SQLITE_OK;
    handle_ = nullptr;
    return ok;
  }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return data == nullptr
               ? ""
               : std::string(data, static_cast<size_t>(sqlite3_column_bytes(handle_, column)));
  }
  int64_t number(int column) const { return sqlite3_column_int64(handle_, column); }

 private:
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<SqliteStorage>> SqliteStorage::open(const std::filesystem::path& file,
                                                           bool create) {
  std::unique_ptr<SqliteStorage> storage(new SqliteStorage(file.string()));
  TRY(storage->connect(create));
  return storage;
}

SqliteStorage::~SqliteStorage() { sqlite3_close(database_); }

Status SqliteStorage::connect(bool create) {
  const int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
  if (sqlite3_open_v2(path_.c_str(), &database_, flags, nullptr) != SQLITE_OK)
    return internal_error("cannot open: {}",
                          database_ ? sqlite3_errmsg(database_) : "out of memory");
  sqlite3_busy_timeout(database_, kBusyMs);
  int64_t version = -1;
  if (Statement read(database_, "PRAGMA user_version"); read.row()) version = read.number(0);
  if (version < 0) return internal_error("not a database: {}", sqlite3_errmsg(database_));
  if (version > kSchemaVersion) return internal_error("written by a newer version");
  return set_up();
}

Status SqliteStorage::execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return internal_error("{}: {}", sql, sqlite3_errmsg(database_));
}

Status SqliteStorage::set_up() {
  // The journal's mode belongs to the connection, unlike the tables.
  TRY(execute("PRAGMA journal_mode=TRUNCATE"));
  TRY(execute("PRAGMA synchronous=FULL"));
  auto is_set_up = [&] {
    return Statement(database_,
                     "SELECT kind, key, text, context, value, written, used, seal FROM costs")
        .ready();
  };
  if (is_set_up()) return {};
  return transaction([&]() -> Status {
    if (is_set_up()) return {};  // another process was faster
    TRY(
        execute("CREATE TABLE IF NOT EXISTS costs(kind TEXT NOT NULL, key TEXT NOT NULL, "
                "text TEXT NOT NULL, value TEXT NOT NULL,"
                " written TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(kind, key))"));
    // Later additions; programs that do not know them go on without.
    if (!Statement(database_, "SELECT context FROM costs").ready())
      TRY(execute("ALTER TABLE costs ADD COLUMN context TEXT NOT NULL DEFAULT ''"));
    if (!Statement(database_, "SELECT used FROM costs").ready())
      TRY(execute("ALTER TABLE costs ADD COLUMN used TEXT NOT NULL DEFAULT ''"));
    if (!Statement(database_, "SELECT seal FROM costs").ready())
      TRY(execute("ALTER TABLE costs ADD COLUMN seal TEXT NOT NULL DEFAULT ''"));
    return execute("PRAGMA user_version=1");
  });
}

Status SqliteStorage::failure() const {
  return internal_error("{}: {}", path_, sqlite3_errmsg(database_));
}

std::optional<StoredValue> SqliteStorage::find(const RowName& row, const std::string&) {
  Statement select(database_,
                   "SELECT value, seal, max(written, used) < datetime('now', '-1 day') FROM costs "
                   "WHERE kind=?1 AND key=?2",
                   row.first, row.second);
  if (!select.row()) return std::nullopt;
  return StoredValue{row.second, select.text(0), select.text(1), select.number(2) != 0};
}

std::vector<StoredValue> SqliteStorage::values(const std::string& kind,
                                               const std::optional<std::string>& context,
                                               size_t most) {
  std::vector<StoredValue> found;
  Statement select(database_,
                   context ? "SELECT key, value, seal FROM costs WHERE kind=?1 AND context=?3 "
                             "ORDER BY written DESC, key LIMIT CAST(?2 AS INTEGER)"
                           : "SELECT key, value, seal FROM costs WHERE kind=?1 "
                             "LIMIT CAST(?2 AS INTEGER)",
                   kind, std::to_string(most), context.value_or(""));
  while (select.row()) found.push_back({select.text(0), select.text(1), select.text(2)});
  return found;
}

Status SqliteStorage::for_each(const std::function<Status(const StoredRow&)>& visit) {
  Statement select(database_,
                   "SELECT kind, key, text, context, value, written, used, seal FROM costs "
                   "ORDER BY kind, key");
  while (select.row())
    TRY(visit({select.text(0), select.text(1), select.text(2), select.text(3), select.text(4),
               select.text(5), select.text(6), select.text(7)}));
  return select.finalize() ? Status() : failure();
}

Status SqliteStorage::put(const StoredRow& row) {
  Statement upsert(database_,
                   "INSERT INTO costs(kind, key, text, context, value, seal, written, used) "
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ifnull(nullif(?7, ''), CURRENT_TIMESTAMP), ?8) "
                   "ON CONFLICT(kind, key) DO UPDATE SET text=excluded.text, "
                   "context=excluded.context, value=excluded.value, seal=excluded.seal, "
                   "written=excluded.written, used=excluded.used",
                   row.kind, row.key, row.text, row.context, row.value, row.seal, row.written,
                   row.used);
  return upsert.done() ? Status() : failure();
}

Status SqliteStorage::remove(const RowName& row) {
  Statement statement(database_, "DELETE FROM costs WHERE kind=?1 AND key=?2", row.first,
                      row.second);
  return statement.done() ? Status() : failure();
}

Status SqliteStorage::transaction(const std::function<Status()>& body) {
  TRY(begin());
  Status status = body();
  if (status.ok()) status = commit();
  if (!status.ok()) roll_back();
  return status;
}

void SqliteStorage::mark_used(const std::set<RowName>& rows) {
  // Nothing depends on it: when another process is busy, the next run does it.
  sqlite3_busy_timeout(database_, 100);
  (void)transaction([&]() -> Status {
    Statement update(database_, "UPDATE costs SET used=CURRENT_TIMESTAMP WHERE kind=?1 AND key=?2");
    for (const auto& [kind, key] : rows) {
      update.bind(kind, key);
      if (!update.done()) return failure();
      update.reset();
    }
    return {};
  });
  sqlite3_busy_timeout(database_, kBusyMs);
}

Status SqliteStorage::check_integrity() {
  Statement check(database_, "PRAGMA integrity_check");
  if (!check.row())
    return error(ErrorCode::kVerification, "{}: {}", path_, sqlite3_errmsg(database_));
  if (check.text(0) != "ok") return error(ErrorCode::kVerification, "{}: {}", path_, check.text(0));
  return {};
}

Result<int64_t> SqliteStorage::used_bytes() {
  auto number = [&](const char* sql) {
    Statement read(database_, sql);
    return read.row() ? read.number(0) : -1;
  };
  const int64_t pages = number("PRAGMA page_count"), unused = number("PRAGMA freelist_count"),
                size = number("PRAGMA page_size");
  if (pages < 0 || unused < 0 || size < 0) return failure();
  return (pages - unused) * size;
}

Result<int64_t> SqliteStorage::shrink_to(int64_t bytes) {
  int64_t rows = 0;
  TRY(transaction([&]() -> Status {
    while (TRY(used_bytes()) > bytes) {
      TRY(execute(
          "DELETE FROM costs WHERE rowid IN (SELECT rowid FROM costs ORDER BY max(written, used) "
          "LIMIT (SELECT 1 + count(*) / 16 FROM costs))"));
      const int changed = sqlite3_changes(database_);
      if (changed == 0) break;
      rows += changed;
    }
    return {};
  }));
  return rows;
}

}  // namespace collage
