#include "cost/database.h"

#include <sqlite3.h>

#include <cstdlib>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/printable.h"

namespace collage {

namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyMs = 60 * 1000;
constexpr int kPutsBetweenLooks = 64;

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
  double real(int column) const { return sqlite3_column_double(handle_, column); }

 private:
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace

std::unique_ptr<CostDatabase> CostDatabase::in_memory() {
  return std::unique_ptr<CostDatabase>(new CostDatabase);
}

CostDatabase::~CostDatabase() {
  record_uses();
  sqlite3_close(database_);
}

std::string CostDatabase::key_of(const std::string& text, const std::string& context) {
  return sha256_hex(text + "\n" + context);
}

Status CostDatabase::execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return internal_error("{}: {}", sql, sqlite3_errmsg(database_));
}

Status CostDatabase::set_up() {
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

Status CostDatabase::open_file(const std::filesystem::path& file, bool create) {
  path_ = file.string();
  seal_ = RowSeal::of_user();
  auto close = [&](Status status) {
    sqlite3_close(database_);
    database_ = nullptr;
    return status;
  };
  int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
  if (sqlite3_open_v2(path_.c_str(), &database_, flags, nullptr) != SQLITE_OK)
    return close(
        internal_error("cannot open: {}", database_ ? sqlite3_errmsg(database_) : "out of memory"));
  sqlite3_busy_timeout(database_, kBusyMs);
  int64_t version = -1;
  if (Statement read(database_, "PRAGMA user_version"); read.row()) version = read.number(0);
  if (version < 0) return close(internal_error("not a database: {}", sqlite3_errmsg(database_)));
  if (version > kSchemaVersion) return close(internal_error("written by a newer version"));
  Status status = set_up();
  return status.ok() ? status : close(std::move(status));
}

std::unique_ptr<CostDatabase> CostDatabase::open(const std::filesystem::path& file) {
  std::unique_ptr<CostDatabase> database = in_memory();
  Status status = database->open_file(file, /*create=*/true);
  if (status.ok()) return database;
  std::error_code ec;
  bool damaged = status.message().find("not a database") != std::string::npos ||
                 status.message().find("malformed") != std::string::npos ||
                 status.message().find("newer") != std::string::npos;
  if (damaged && std::filesystem::is_regular_file(file, ec)) {
    std::filesystem::path aside = file;
    for (int n = 1;
         std::filesystem::exists(aside = file.string() + ".aside" + std::to_string(n), ec); ++n)
      continue;
    std::filesystem::rename(file, aside, ec);
    if (!ec) {
      log::warn("cost database {}: {}; moved to {} and started anew", file.string(),
                status.message(), aside.string());
      status = database->open_file(file, /*create=*/true);
    }
  }
  if (!status.ok()) database->give_up(status.message());
  return database;
}

Result<std::unique_ptr<CostDatabase>> CostDatabase::open_existing(
    const std::filesystem::path& file) {
  std::error_code ec;
  if (!std::filesystem::exists(file, ec))
    return error(ErrorCode::kUnavailable, "there is no cost database {}: nothing was measured yet",
                 file.string());
  std::unique_ptr<CostDatabase> database = in_memory();
  TRY(database->open_file(file, /*create=*/false).with_context("cost database " + file.string()));
  return database;
}

void CostDatabase::give_up(const std::string& why) {
  log::warn("cost database {}: {}; costs are kept in memory for this run only", path_, why);
  sqlite3_close(database_);
  database_ = nullptr;
}

bool CostDatabase::is_foreign(const std::string& kind, const std::string& key,
                              const std::string& value, const std::string& seal) {
  if (seal == seal_->of(kind, key, value)) return false;
  if (!seal.empty() && !std::exchange(told_of_foreign_, true))
    log::warn(
        "cost database {}: rows that were not written here (the first: {} {}) are measured "
        "and checked again",
        path_, kind, printable(key.substr(0, 12)));
  return true;
}

bool CostDatabase::is_believed(const std::string& kind) const {
  return believes_foreign_ && kind != "check" && kind != "quarantine";
}

std::optional<std::string> CostDatabase::find(const std::string& kind, const std::string& key) {
  if (auto it = memory_.find({kind, key}); it != memory_.end()) return it->second;
  if (database_ == nullptr) return std::nullopt;
  Statement select(database_,
                   "SELECT value, max(written, used) < datetime('now', '-1 day'), seal FROM costs "
                   "WHERE kind=?1 AND key=?2",
                   kind, key);
  if (!select.row()) return std::nullopt;
  if (is_foreign(kind, key, select.text(0), select.text(2)) && !is_believed(kind))
    return std::nullopt;
  if (select.number(1) != 0) to_mark_used_.insert({kind, key});
  return select.text(0);
}

std::optional<std::string> CostDatabase::find_foreign(const std::string& kind,
                                                      const std::string& key) {
  if (database_ == nullptr || memory_.count({kind, key}) != 0) return std::nullopt;
  Statement select(database_, "SELECT value, seal FROM costs WHERE kind=?1 AND key=?2", kind, key);
  if (!select.row() || !is_foreign(kind, key, select.text(0), select.text(1))) return std::nullopt;
  return select.text(0);
}

void CostDatabase::put(const std::string& kind, const std::string& key, const std::string& text,
                       const std::string& value, const std::string& context) {
  if (database_ != nullptr) {
    Statement upsert(
        database_,
        "INSERT INTO costs(kind, key, text, value, context, seal) VALUES(?1, ?2, ?3, ?4, ?5, ?6) "
        "ON CONFLICT(kind, key) DO UPDATE SET value=excluded.value, context=excluded.context, "
        "seal=excluded.seal, written=CURRENT_TIMESTAMP",
        kind, key, text, value, context, seal_->of(kind, key, value));
    if (upsert.done()) {
      memory_.erase({kind, key});
      if (++puts_ % kPutsBetweenLooks == 0) limit_size();
      return;
    }
    std::string why = sqlite3_errmsg(database_);
    upsert.finalize();
    give_up(why);
  }
  memory_[{kind, key}] = value;
}

void CostDatabase::together(const std::function<void()>& body) {
  // Where somebody else writes for long, one by one.
  const bool begun = database_ != nullptr && execute("BEGIN IMMEDIATE").ok();
  body();
  if (!begun || database_ == nullptr) return;
  if (const Status written = execute("COMMIT"); !written.ok()) {
    (void)execute("ROLLBACK");
    give_up(written.message());
  }
}

void CostDatabase::remember(const std::string& kind, const std::string& key,
                            const std::string& value) {
  memory_[{kind, key}] = value;
}

std::optional<double> CostDatabase::average(const std::string& kind, const std::string& number,
                                            const std::string& where, const std::string& text) {
  if (database_ == nullptr) return std::nullopt;
  Statement select(database_,
                   "SELECT avg(n), count(n) FROM (SELECT json_extract(value, ?2) AS n FROM costs "
                   "WHERE kind=?1 AND json_valid(value) AND json_extract(value, ?3)=?4 LIMIT 1000) "
                   "WHERE typeof(n) IN ('integer', 'real') AND n BETWEEN 0 AND 1e6",
                   kind, number, where, text);
  if (!select.row() || select.number(1) < 5) return std::nullopt;
  return select.real(0);
}

std::vector<std::pair<std::string, std::string>> CostDatabase::values(const std::string& kind,
                                                                      const std::string& context) {
  std::vector<std::pair<std::string, std::string>> found;
  if (database_ == nullptr) return found;
  Statement select(database_,
                   "SELECT key, value, seal FROM costs WHERE kind=?1 AND context=?2 "
                   "ORDER BY written DESC, key LIMIT 4000",
                   kind, context);
  while (select.row())
    if (!is_foreign(kind, select.text(0), select.text(1), select.text(2)) || is_believed(kind))
      found.emplace_back(select.text(0), select.text(1));
  return found;
}

void CostDatabase::warn_of_row(const std::string& kind, const std::string& key, const Status& why) {
  if (!warned_of_.insert({kind, key}).second) return;
  log::warn("cost database {}: {} {} is left aside: {} (see collage db verify)", path_, kind,
            printable(key.substr(0, 12)), printable(why.to_string(), 300));
}

void CostDatabase::record_uses() {
  if (database_ == nullptr || to_mark_used_.empty()) return;
  // Nothing depends on it: when another process is busy, the next run does it.
  sqlite3_busy_timeout(database_, 100);
  (void)transaction([&]() -> Status {
    Statement update(database_, "UPDATE costs SET used=CURRENT_TIMESTAMP WHERE kind=?1 AND key=?2");
    for (const auto& [kind, key] : to_mark_used_) {
      update.bind(kind, key);
      if (!update.done()) return internal_error("{}", sqlite3_errmsg(database_));
      update.reset();
    }
    return {};
  });
}

void CostDatabase::limit_size() {
  Result<int64_t> bytes = used_bytes();
  if (!bytes || *bytes <= limit_) return;
  Result<int64_t> forgotten = shrink_to(limit_ / 5 * 4);
  if (forgotten)
    log::info("cost database {}: forgot {} rows that were not used for longest", path_, *forgotten);
}

Status CostDatabase::for_each(const std::function<Status(const CostRow&)>& visit) {
  Statement select(database_,
                   "SELECT kind, key, text, context, value, written, used, seal FROM costs "
                   "ORDER BY kind, key");
  while (select.row()) {
    CostRow row{select.text(0), select.text(1), select.text(2), select.text(3),
                select.text(4), select.text(5), select.text(6)};
    row.foreign = select.text(7) != seal_->of(row.kind, row.key, row.value);
    TRY(visit(row));
  }
  return select.finalize() ? Status() : failure();
}

Status CostDatabase::transaction(const std::function<Status()>& body) {
  TRY(execute("BEGIN IMMEDIATE"));
  Status status = body();
  if (status.ok()) status = execute("COMMIT");
  if (!status.ok()) (void)execute("ROLLBACK");
  return status;
}

Status CostDatabase::failure() const {
  return internal_error("{}: {}", path_, sqlite3_errmsg(database_));
}

Status CostDatabase::insert(const CostRow& row) {
  Statement upsert(database_,
                   "INSERT OR REPLACE INTO costs(kind, key, text, context, value, written, used, "
                   "seal) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                   row.kind, row.key, row.text, row.context, row.value, row.written, row.used,
                   row.foreign ? "" : seal_->of(row.kind, row.key, row.value));
  return upsert.done() ? Status() : failure();
}

Status CostDatabase::remove(const std::string& kind, const std::string& key) {
  Statement statement(database_, "DELETE FROM costs WHERE kind=?1 AND key=?2", kind, key);
  return statement.done() ? Status() : failure();
}

Status CostDatabase::check_integrity() {
  Statement check(database_, "PRAGMA integrity_check");
  if (!check.row())
    return error(ErrorCode::kVerification, "{}: {}", path_, sqlite3_errmsg(database_));
  if (check.text(0) != "ok") return error(ErrorCode::kVerification, "{}: {}", path_, check.text(0));
  return {};
}

Status CostDatabase::compact() { return execute("VACUUM").with_context(path_); }

Result<int64_t> CostDatabase::used_bytes() {
  auto number = [&](const char* sql) {
    Statement read(database_, sql);
    return read.row() ? read.number(0) : -1;
  };
  int64_t pages = number("PRAGMA page_count"), unused = number("PRAGMA freelist_count"),
          size = number("PRAGMA page_size");
  if (pages < 0 || unused < 0 || size < 0) return failure();
  return (pages - unused) * size;
}

Result<int64_t> CostDatabase::shrink_to(int64_t bytes) {
  int64_t rows = 0;
  TRY(transaction([&]() -> Status {
    while (TRY(used_bytes()) > bytes) {
      TRY(execute(
          "DELETE FROM costs WHERE rowid IN (SELECT rowid FROM costs ORDER BY max(written, used) "
          "LIMIT (SELECT 1 + count(*) / 16 FROM costs))"));
      int changed = sqlite3_changes(database_);
      if (changed == 0) break;
      rows += changed;
    }
    return {};
  }));
  return rows;
}

}  // namespace collage
