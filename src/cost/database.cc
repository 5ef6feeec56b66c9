#include "cost/database.h"

#include <sqlite3.h>

#include "base/log.h"

namespace collage {

namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyMs = 60 * 1000;

struct Statement {
  sqlite3_stmt* handle = nullptr;
  Statement(sqlite3* database, const char* sql) {
    sqlite3_prepare_v2(database, sql, -1, &handle, nullptr);
  }
  ~Statement() { sqlite3_finalize(handle); }
  void bind(int position, const std::string& text) {
    sqlite3_bind_text(handle, position, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
};

}  // namespace

std::unique_ptr<CostDatabase> CostDatabase::in_memory() {
  return std::unique_ptr<CostDatabase>(new CostDatabase);
}

CostDatabase::~CostDatabase() { sqlite3_close(database_); }

Status CostDatabase::open_file(const std::filesystem::path& file) {
  path_ = file.string();
  auto failure = [&](const char* what) {
    Status status =
        internal_error("{}: {}", what, database_ ? sqlite3_errmsg(database_) : "out of memory");
    sqlite3_close(database_);
    database_ = nullptr;
    return status;
  };
  if (sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                      nullptr) != SQLITE_OK)
    return failure("cannot open");
  sqlite3_busy_timeout(database_, kBusyMs);
  int version = -1;
  {
    Statement read(database_, "PRAGMA user_version");
    if (read.handle != nullptr && sqlite3_step(read.handle) == SQLITE_ROW)
      version = sqlite3_column_int(read.handle, 0);
  }
  if (version < 0) return failure("not a database");
  if (version > kSchemaVersion) {
    sqlite3_close(database_);
    database_ = nullptr;
    return internal_error("written by a newer version");
  }
  static constexpr const char* kSetUp[] = {
      "PRAGMA journal_mode=TRUNCATE",
      "PRAGMA synchronous=FULL",
      "BEGIN IMMEDIATE",
      "CREATE TABLE IF NOT EXISTS costs(kind TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, "
      "value TEXT NOT NULL,"
      " written TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(kind, key))",
      "PRAGMA user_version=1",
      "COMMIT"};
  for (const char* sql : kSetUp)
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failure(sql);
  return {};
}

std::unique_ptr<CostDatabase> CostDatabase::open(const std::filesystem::path& file) {
  std::unique_ptr<CostDatabase> database = in_memory();
  Status status = database->open_file(file);
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
      status = database->open_file(file);
    }
  }
  if (!status.ok()) database->give_up(status.message());
  return database;
}

void CostDatabase::give_up(const std::string& why) {
  log::warn("cost database {}: {}; costs are kept in memory for this run only", path_, why);
  sqlite3_close(database_);
  database_ = nullptr;
}

std::optional<std::string> CostDatabase::find(const std::string& kind, const std::string& key) {
  if (auto it = memory_.find({kind, key}); it != memory_.end()) return it->second;
  if (database_ == nullptr) return std::nullopt;
  Statement select(database_, "SELECT value FROM costs WHERE kind=?1 AND key=?2");
  if (select.handle == nullptr) return std::nullopt;
  select.bind(1, kind);
  select.bind(2, key);
  if (sqlite3_step(select.handle) != SQLITE_ROW) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(select.handle, 0));
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(select.handle, 0)));
}

void CostDatabase::put(const std::string& kind, const std::string& key, const std::string& text,
                       const std::string& value) {
  if (database_ != nullptr) {
    Statement upsert(
        database_,
        "INSERT INTO costs(kind, key, text, value) VALUES(?1, ?2, ?3, ?4) "
        "ON CONFLICT(kind, key) DO UPDATE SET value=excluded.value, written=CURRENT_TIMESTAMP");
    if (upsert.handle != nullptr) {
      upsert.bind(1, kind);
      upsert.bind(2, key);
      upsert.bind(3, text);
      upsert.bind(4, value);
      if (sqlite3_step(upsert.handle) == SQLITE_DONE) return;
    }
    std::string why = sqlite3_errmsg(database_);
    sqlite3_finalize(upsert.handle);
    upsert.handle = nullptr;
    give_up(why);
  }
  memory_[{kind, key}] = value;
}

}  // namespace collage
