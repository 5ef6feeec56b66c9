// The cost database: measurements that outlive the process, shared by many processes. SQLite with a
// rollback journal; every write is one transaction, so a kill loses at most the measurement in
// flight. Values are JSON text under SHA-256 keys of canonical text (see docs/cost-model.md for
// what a key holds).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

struct sqlite3;

namespace collage {

class CostDatabase {
 public:
  // Opens or creates the file. A corrupt or newer file is moved aside with a warning. An unusable
  // place (unwritable folder, full disk) gives one warning and a database in memory: never an
  // error.
  static std::unique_ptr<CostDatabase> open(const std::filesystem::path& file);
  static std::unique_ptr<CostDatabase> in_memory();
  ~CostDatabase();
  CostDatabase(const CostDatabase&) = delete;
  CostDatabase& operator=(const CostDatabase&) = delete;

  // `kind`: "function", "conversion", "cover".
  std::optional<std::string> find(const std::string& kind, const std::string& key);
  // Inserts or replaces. After a failed write (disk full) the value is kept in memory only, with
  // one warning.
  void put(const std::string& kind, const std::string& key, const std::string& text,
           const std::string& value);
  bool on_disk() const { return database_ != nullptr; }

 private:
  CostDatabase() = default;
  Status open_file(const std::filesystem::path& file);
  void give_up(const std::string& why);

  sqlite3* database_ = nullptr;
  std::string path_;
  std::map<std::pair<std::string, std::string>, std::string>
      memory_;  // what could not be written, or everything without a file
};

}  // namespace collage
