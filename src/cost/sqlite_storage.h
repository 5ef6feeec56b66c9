// A file of costs, for any number of processes of one machine. SQLite with a rollback journal;
// every write is one transaction, so a kill loses at most the measurement in flight.
#pragma once

#include <filesystem>
#include <memory>

#include "cost/cost_storage.h"

struct sqlite3;

namespace collage {

class SqliteStorage : public CostStorage {
 public:
  static Result<std::unique_ptr<SqliteStorage>> open(const std::filesystem::path& file,
                                                     bool create);
  ~SqliteStorage() override;

  std::string name() const override { return path_; }
  std::optional<StoredValue> find(const RowName& row, const std::string& context) override;
  std::vector<StoredValue> values(const std::string& kind,
                                  const std::optional<std::string>& context, size_t most) override;
  Status for_each(const std::function<Status(const StoredRow&)>& visit) override;
  Status put(const StoredRow& row) override;
  Status remove(const RowName& row) override;
  Status begin() override { return execute("BEGIN IMMEDIATE"); }
  Status commit() override { return execute("COMMIT"); }
  void roll_back() override { (void)execute("ROLLBACK"); }
  Status check_integrity() override;
  Status compact() override { return execute("VACUUM").with_context(path_); }
  Result<int64_t> used_bytes() override;
  Result<int64_t> shrink_to(int64_t bytes) override;
  void mark_used(const std::set<RowName>& rows) override;

 private:
  explicit SqliteStorage(std::string path) : path_(std::move(path)) {}
  Status connect(bool create);
  Status set_up();
  Status transaction(const std::function<Status()>& body);
  Status execute(const char* sql);
  Status failure() const;  // SQLite's latest

  const std::string path_;
  sqlite3* database_ = nullptr;
};

}  // namespace collage
