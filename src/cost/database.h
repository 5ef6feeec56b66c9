// The cost database: measurements that outlive the process, shared by many processes. Rows are kept
// in a file, or on a server that many machines share (cost_storage.h). Values are JSON text under
// SHA-256 keys of canonical text (see docs/cost-model.md for what a key holds). database_tools.h
// has what `collage db` does with it.
//
// Rows that somebody else wrote (base/user_seal.h: imported, copied, edited) are foreign. They are
// hints of what is worth a measurement; what this machine can time or check, it does itself.
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
#include "base/user_seal.h"
#include "cost/cost_storage.h"

namespace collage {

// Of a file; rows that were not used for longest go.
constexpr int64_t kDatabaseLimit = int64_t{512} << 20;

// What rows are of (row_values.h).
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
  // Likewise, or connects to the server of a postgresql:// address: kUnavailable when it cannot be
  // reached, refuses, or is of a newer version.
  static Result<std::unique_ptr<CostDatabase>> open_at(const std::string& place);
  // The file as it is, for looking after it: kUnavailable when there is none, else why it cannot be
  // used. Never moves it aside. Of a server as `open_at`.
  static Result<std::unique_ptr<CostDatabase>> open_existing(const std::string& place);
  static std::unique_ptr<CostDatabase> in_memory();
  ~CostDatabase();
  CostDatabase(const CostDatabase&) = delete;
  CostDatabase& operator=(const CostDatabase&) = delete;

  // The key of a row with a context.
  static std::string key_of(const std::string& text, const std::string& context);

  // None of a foreign row; where these are believed, of one that says what was checked. With the
  // row's context, those of the same context are fetched with it (cost_storage.h).
  std::optional<std::string> find(const std::string& kind, const std::string& key,
                                  const std::string& context = "");
  // Of a foreign row only.
  std::optional<std::string> find_foreign(const std::string& kind, const std::string& key);
  // Fetches rows that are sought next, at once, where each alone would be waited for.
  void expect(const std::vector<std::string>& kinds, const std::vector<std::string>& keys);
  bool is_server() const { return storage_ != nullptr && storage_->is_server(); }
  // From now on, for who may measure nothing: foreign rows say what things take.
  void believe_foreign(bool believe) { believes_foreign_ = believe; }
  // Inserts or replaces. After a failed write (disk full, a server that lets this user read only)
  // the value is kept in memory only, with one warning. Now and then it looks at the size of a
  // file, and forgets the rows that were not used for longest when the limit (kDatabaseLimit) is
  // passed.
  void put(const std::string& kind, const std::string& key, const std::string& text,
           const std::string& value, const std::string& context = "");
  void set_limit(int64_t bytes) { limit_ = bytes; }
  // Writes what `body` puts together: each row alone waits for the disk several times.
  void together(const std::function<void()>& body);
  // The same in memory alone: what is no news to anybody but this process.
  void remember(const std::string& kind, const std::string& key, const std::string& value);
  // The average of a number in some values of that kind where a text in them is `text` (JSON
  // pointers); numbers that are negative or above a million do not count. None of fewer than five.
  std::optional<double> average(const std::string& kind, const std::string& number,
                                const std::string& where, const std::string& text);
  // Keys and values of that kind with that context, the newest few thousand that `find` finds.
  std::vector<std::pair<std::string, std::string>> values(const std::string& kind,
                                                          const std::string& context);
  // Values of that kind with that context, or any, whoever wrote them.
  std::vector<std::string> values_of_anybody(const std::string& kind,
                                             const std::optional<std::string>& context);
  // Says, once a row, that its value is malformed and that it is left aside (row_values.h).
  void warn_of_row(const std::string& kind, const std::string& key, const Status& why);
  // Whether what is put outlives the process, or should.
  bool on_disk() const { return storage_ != nullptr; }

  // For maintenance; all need a file or a server.
  // Every row, in order of kind and key; stops at the first error of `visit`.
  Status for_each(const std::function<Status(const CostRow&)>& visit);
  // Runs `body` in one transaction: all of its changes or none.
  Status transaction(const std::function<Status()>& body);
  // Replaces; keeps the row's dates, and whether it is foreign.
  Status insert(const CostRow& row);
  Status remove(const std::string& kind, const std::string& key);
  Status check_integrity() { return storage_->check_integrity(); }
  Status compact() { return storage_->compact(); }  // gives unused space back
  Result<int64_t> used_bytes() { return storage_->used_bytes(); }
  // Forgets the rows of a file that were not used for longest until no more than so many bytes are
  // used; the number of rows.
  Result<int64_t> shrink_to(int64_t bytes) { return storage_->shrink_to(bytes); }

 private:
  CostDatabase() = default;
  static std::unique_ptr<CostDatabase> of(std::unique_ptr<CostStorage> storage);
  void give_up(const std::string& why);
  // Whether a row that is kept is foreign; tells, once, of the first with a wrong seal.
  bool is_foreign(const std::string& kind, const StoredValue& row);
  bool is_believed(const std::string& kind) const;  // though it be foreign
  void limit_size();

  std::unique_ptr<CostStorage> storage_;  // null: in memory
  std::string name_;
  std::optional<UserSeal> seal_;  // of what is kept
  bool believes_foreign_ = false, told_of_foreign_ = false;
  bool told_of_failure_ = false, is_together_ = false;
  std::map<RowName, std::string> memory_;    // what was not to be written, or could not be
  std::map<RowName, std::string> together_;  // what is not written yet
  std::set<RowName> to_mark_used_, warned_of_;
  int puts_ = 0;
  int64_t limit_ = kDatabaseLimit;
};

}  // namespace collage
