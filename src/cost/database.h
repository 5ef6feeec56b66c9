// The cost database: measurements that outlive the process, shared by many processes. SQLite with a
// rollback journal; every write is one transaction, so a kill loses at most the measurement in
// flight. Values are JSON text under SHA-256 keys of canonical text (see docs/cost-model.md for
// what a key holds). database_tools.h has what `collage db` does with it.
//
// Rows that somebody else wrote (row_seal.h: imported, copied, edited) are foreign. They are hints
// of what is worth a measurement; what this machine can time or check, it does itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/row_seal.h"

struct sqlite3;

namespace collage {

// What rows are of (row_values.h).
// Of a file; rows that were not used for longest go.
constexpr int64_t kDatabaseLimit = int64_t{512} << 20;

inline const std::vector<std::string> kRowKinds = {
    "function", "conversion", "trial",   "cover",     "check", "in_situ",
    "budgets",  "quarantine", "machine", "schedules", "plan"};

struct CostRow {
  std::string kind, key;  // one of kRowKinds
  std::string text;       // what was measured
  std::string context;  // where and with which versions: lines; empty where it is part of the text
  std::string value;
  std::string written, used;  // "2026-01-31 12:00:00", UTC; used: in steps of a day, may be empty
  bool foreign = false;       // written by somebody else
};

class CostDatabase {
 public:
  // Opens or creates the file. A corrupt or newer file is moved aside with a warning. An unusable
  // place (unwritable folder, full disk) gives one warning and a database in memory: never an
  // error.
  static std::unique_ptr<CostDatabase> open(const std::filesystem::path& file);
  // The file as it is, for looking after it: kUnavailable when there is none, else why it cannot be
  // used. Never moves it aside.
  static Result<std::unique_ptr<CostDatabase>> open_existing(const std::filesystem::path& file);
  static std::unique_ptr<CostDatabase> in_memory();
  ~CostDatabase();
  CostDatabase(const CostDatabase&) = delete;
  CostDatabase& operator=(const CostDatabase&) = delete;

  // The key of a row with a context.
  static std::string key_of(const std::string& text, const std::string& context);

  // None of a foreign row; where these are believed, of one that says what was checked.
  std::optional<std::string> find(const std::string& kind, const std::string& key);
  // Of a foreign row only.
  std::optional<std::string> find_foreign(const std::string& kind, const std::string& key);
  // From now on, for who may measure nothing: foreign rows say what things take.
  void believe_foreign(bool believe) { believes_foreign_ = believe; }
  // Inserts or replaces. After a failed write (disk full) the value is kept in memory only, with
  // one warning. Now and then it looks at the size, and forgets the rows that were not used for
  // longest when the limit (kDatabaseLimit) is passed.
  void put(const std::string& kind, const std::string& key, const std::string& text,
           const std::string& value, const std::string& context = "");
  void set_limit(int64_t bytes) { limit_ = bytes; }
  // Writes what `body` puts together: each row alone waits for the disk several times.
  void together(const std::function<void()>& body);
  // The same in memory alone: what is no news to anybody but this process.
  void remember(const std::string& kind, const std::string& key, const std::string& value);
  // The average of a number in the values of that kind where a text in them is `text` (JSON paths);
  // numbers that are negative or above a million do not count.
  std::optional<double> average(const std::string& kind, const std::string& number,
                                const std::string& where, const std::string& text);
  // Keys and values of that kind with that context, the newest few thousand that `find` finds.
  std::vector<std::pair<std::string, std::string>> values(const std::string& kind,
                                                          const std::string& context);
  // Says, once a row, that its value is malformed and that it is left aside (row_values.h).
  void warn_of_row(const std::string& kind, const std::string& key, const Status& why);
  bool on_disk() const { return database_ != nullptr; }

  // For maintenance; all need a file.
  // Every row, in order of kind and key; stops at the first error of `visit`.
  Status for_each(const std::function<Status(const CostRow&)>& visit);
  // Runs `body` in one transaction: all of its changes or none.
  Status transaction(const std::function<Status()>& body);
  // Replaces; keeps the row's dates, and whether it is foreign.
  Status insert(const CostRow& row);
  Status remove(const std::string& kind, const std::string& key);
  Status check_integrity();      // of the file, by SQLite
  Status compact();              // gives unused pages back to the file system
  Result<int64_t> used_bytes();  // pages that hold something
  // Forgets the rows that were not used for longest until no more than so many bytes are used; the
  // number of rows.
  Result<int64_t> shrink_to(int64_t bytes);

 private:
  CostDatabase() = default;
  Status open_file(const std::filesystem::path& file, bool create);
  Status set_up();
  Status execute(const char* sql);
  Status failure() const;  // SQLite's latest
  void give_up(const std::string& why);
  // Whether a row of the file is foreign; tells, once, of the first with a wrong seal.
  bool is_foreign(const std::string& kind, const std::string& key, const std::string& value,
                  const std::string& seal);
  bool is_believed(const std::string& kind) const;  // though it be foreign
  void record_uses();
  void limit_size();

  sqlite3* database_ = nullptr;
  std::string path_;
  std::optional<RowSeal> seal_;  // of a file
  bool believes_foreign_ = false, told_of_foreign_ = false;
  std::map<std::pair<std::string, std::string>, std::string>
      memory_;  // what was not to be written, or could not be; everything without a file
  std::set<std::pair<std::string, std::string>> to_mark_used_, warned_of_;
  int puts_ = 0;
  int64_t limit_ = kDatabaseLimit;
};

}  // namespace collage
