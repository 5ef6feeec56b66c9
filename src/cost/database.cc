#include "cost/database.h"

#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"
#include "cost/postgres_storage.h"
#include "cost/sqlite_storage.h"

namespace collage {

namespace {

constexpr int kPutsBetweenLooks = 64;

// Moves a file that cannot be used out of the way; whether that was the reason.
bool move_aside(const std::filesystem::path& file, const Status& why) {
  std::error_code ec;
  const bool damaged = why.message().find("not a database") != std::string::npos ||
                       why.message().find("malformed") != std::string::npos ||
                       why.message().find("newer") != std::string::npos;
  if (!damaged || !std::filesystem::is_regular_file(file, ec)) return false;
  std::filesystem::path aside = file;
  for (int n = 1; std::filesystem::exists(aside = file.string() + ".aside" + std::to_string(n), ec);
       ++n)
    continue;
  std::filesystem::rename(file, aside, ec);
  if (ec) return false;
  log::warn("cost database {}: {}; moved to {} and started anew", file.string(), why.message(),
            aside.string());
  return true;
}

}  // namespace

std::unique_ptr<CostDatabase> CostDatabase::in_memory() {
  return std::unique_ptr<CostDatabase>(new CostDatabase);
}

std::unique_ptr<CostDatabase> CostDatabase::of(std::unique_ptr<CostStorage> storage) {
  std::unique_ptr<CostDatabase> database = in_memory();
  database->name_ = storage->name();
  database->storage_ = std::move(storage);
  database->seal_ = UserSeal::of_user();
  return database;
}

CostDatabase::~CostDatabase() {
  if (storage_ != nullptr && !to_mark_used_.empty()) storage_->mark_used(to_mark_used_);
}

std::string CostDatabase::key_of(const std::string& text, const std::string& context) {
  return sha256_hex(text + "\n" + context);
}

std::unique_ptr<CostDatabase> CostDatabase::open(const std::filesystem::path& file) {
  Result<std::unique_ptr<SqliteStorage>> storage = SqliteStorage::open(file, /*create=*/true);
  if (!storage && move_aside(file, storage.status()))
    storage = SqliteStorage::open(file, /*create=*/true);
  if (storage) return of(std::move(storage).value());
  std::unique_ptr<CostDatabase> database = in_memory();
  database->name_ = file.string();
  database->give_up(storage.status().message());
  return database;
}

Result<std::unique_ptr<CostDatabase>> CostDatabase::open_at(const std::string& place) {
  if (!PostgresStorage::is_address(place)) return open(place);
  return of(TRY(PostgresStorage::open(place)));
}

Result<std::unique_ptr<CostDatabase>> CostDatabase::open_existing(const std::string& place) {
  if (PostgresStorage::is_address(place)) return open_at(place);
  std::error_code ec;
  if (!std::filesystem::exists(place, ec))
    return error(ErrorCode::kUnavailable, "there is no cost database {}: nothing was measured yet",
                 place);
  return of(
      TRY(SqliteStorage::open(place, /*create=*/false).with_context("cost database " + place)));
}

void CostDatabase::give_up(const std::string& why) {
  if (!std::exchange(told_of_failure_, true))
    log::warn("cost database {}: {}; costs are kept in memory for this run only", name_, why);
  // A server's rows are of use all the same.
  if (!is_server()) storage_ = nullptr;
}

bool CostDatabase::is_foreign(const std::string& kind, const StoredValue& row) {
  if (seal_->is_valid(row.seal, kind, row.key, row.value)) return false;
  if (!row.seal.empty() && !std::exchange(told_of_foreign_, true))
    log::warn(
        "cost database {}: rows that were not written here (the first: {} {}) are measured "
        "and checked again",
        name_, kind, printable(row.key.substr(0, 12)));
  return true;
}

bool CostDatabase::is_believed(const std::string& kind) const {
  return believes_foreign_ && kind != "check" && kind != "quarantine";
}

std::optional<std::string> CostDatabase::find(const std::string& kind, const std::string& key,
                                              const std::string& context) {
  if (auto it = memory_.find({kind, key}); it != memory_.end()) return it->second;
  if (storage_ == nullptr) return std::nullopt;
  std::optional<StoredValue> row = storage_->find({kind, key}, context);
  if (!row || (is_foreign(kind, *row) && !is_believed(kind))) return std::nullopt;
  if (row->long_unused) to_mark_used_.insert({kind, key});
  return std::move(row->value);
}

std::optional<std::string> CostDatabase::find_foreign(const std::string& kind,
                                                      const std::string& key) {
  if (storage_ == nullptr || memory_.count({kind, key}) != 0) return std::nullopt;
  std::optional<StoredValue> row = storage_->find({kind, key});
  if (!row || !is_foreign(kind, *row)) return std::nullopt;
  return std::move(row->value);
}

void CostDatabase::expect(const std::vector<std::string>& kinds,
                          const std::vector<std::string>& keys) {
  if (storage_ != nullptr && !keys.empty()) storage_->expect(kinds, keys);
}

void CostDatabase::put(const std::string& kind, const std::string& key, const std::string& text,
                       const std::string& value, const std::string& context) {
  if (on_disk()) {
    const Status written =
        storage_->put({kind, key, text, context, value, "", "", seal_->of(kind, key, value)});
    if (written.ok()) {
      memory_.erase({kind, key});
      if (is_together_) together_[{kind, key}] = value;
      if (!is_server() && ++puts_ % kPutsBetweenLooks == 0) limit_size();
      return;
    }
    give_up(written.message());
  }
  memory_[{kind, key}] = value;
}

void CostDatabase::together(const std::function<void()>& body) {
  if (is_together_) return body();
  // Where somebody else writes for long, one by one.
  is_together_ = on_disk() && storage_->begin().ok();
  body();
  if (!std::exchange(is_together_, false)) return;
  if (on_disk()) {
    const Status written = storage_->commit();
    if (written.ok()) return together_.clear();
    storage_->roll_back();
    give_up(written.message());
  }
  memory_.merge(std::exchange(together_, {}));
}

void CostDatabase::remember(const std::string& kind, const std::string& key,
                            const std::string& value) {
  memory_[{kind, key}] = value;
}

std::optional<double> CostDatabase::average(const std::string& kind, const std::string& number,
                                            const std::string& where, const std::string& text) {
  constexpr size_t kLooked = 64, kLeast = 5;
  if (storage_ == nullptr) return std::nullopt;
  const nlohmann::json::json_pointer at(number), beside(where);
  double sum = 0;
  size_t count = 0;
  for (const StoredValue& row : storage_->values(kind, std::nullopt, kLooked)) {
    const nlohmann::json value = parse_json(row.value);
    if (!value.contains(beside) || value[beside] != text || !value.contains(at)) continue;
    const double found = value[at].is_number() ? value[at].get<double>() : -1;
    if (!(found >= 0 && found <= 1e6)) continue;
    sum += found;
    ++count;
  }
  return count < kLeast ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::vector<std::pair<std::string, std::string>> CostDatabase::values(const std::string& kind,
                                                                      const std::string& context) {
  constexpr size_t kMost = 4000;
  std::vector<std::pair<std::string, std::string>> found;
  if (storage_ == nullptr) return found;
  for (StoredValue& row : storage_->values(kind, context, kMost))
    if (!is_foreign(kind, row) || is_believed(kind))
      found.emplace_back(std::move(row.key), std::move(row.value));
  return found;
}

std::vector<std::string> CostDatabase::values_of_anybody(
    const std::string& kind, const std::optional<std::string>& context) {
  constexpr size_t kMost = 4000;
  std::vector<std::string> found;
  if (storage_ != nullptr)
    for (StoredValue& row : storage_->values(kind, context, kMost))
      found.push_back(std::move(row.value));
  return found;
}

void CostDatabase::warn_of_row(const std::string& kind, const std::string& key, const Status& why) {
  if (!warned_of_.insert({kind, key}).second) return;
  log::warn("cost database {}: {} {} is left aside: {} (see collage db verify)", name_, kind,
            printable(key.substr(0, 12)), printable(why.to_string(), 300));
}

void CostDatabase::limit_size() {
  Result<int64_t> bytes = used_bytes();
  if (!bytes || *bytes <= limit_) return;
  Result<int64_t> forgotten = shrink_to(limit_ / 5 * 4);
  if (forgotten)
    log::info("cost database {}: forgot {} rows that were not used for longest", name_, *forgotten);
}

Status CostDatabase::for_each(const std::function<Status(const CostRow&)>& visit) {
  return storage_->for_each([&](const StoredRow& row) {
    const bool foreign = !seal_->is_valid(row.seal, row.kind, row.key, row.value);
    return visit(
        {row.kind, row.key, row.text, row.context, row.value, row.written, row.used, foreign});
  });
}

Status CostDatabase::transaction(const std::function<Status()>& body) {
  TRY(storage_->begin());
  Status status = body();
  if (status.ok()) status = storage_->commit();
  if (!status.ok()) storage_->roll_back();
  return status;
}

Status CostDatabase::insert(const CostRow& row) {
  return storage_->put({row.kind, row.key, row.text, row.context, row.value, row.written, row.used,
                        row.foreign ? "" : seal_->of(row.kind, row.key, row.value)});
}

Status CostDatabase::remove(const std::string& kind, const std::string& key) {
  return storage_->remove({kind, key});
}

}  // namespace collage
