// Where a cost database (database.h) keeps its rows: a file of SQLite (sqlite_storage.h) or tables
// of a PostgreSQL server (postgres_storage.h). Storage knows nothing of what rows mean, of who
// wrote them, or of who believes them. What it says it has written survives the end of any process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace collage {

struct StoredRow {
  std::string kind, key, text, context, value;
  std::string written, used;  // "2026-01-31 12:00:00", UTC; writing it, empty: now, and never
  std::string seal;           // base/user_seal.h
};

struct StoredValue {
  std::string key, value, seal;
  bool long_unused = false;  // for a day
};

using RowName = std::pair<std::string, std::string>;  // kind, key

class CostStorage {
 public:
  virtual ~CostStorage() = default;
  virtual std::string name() const = 0;  // for messages: a path, or a server without a password
  // Whether each call may wait for a network, and others own the rows: nothing but `remove` forgets
  // any there.
  virtual bool is_server() const { return false; }

  // With a context, which must be the row's, a server sends all rows of that context the first
  // time, and says of others from then on that they are not there.
  virtual std::optional<StoredValue> find(const RowName& row, const std::string& context = "") = 0;
  // Of several rows that are asked for next: a server sends them at once.
  virtual void expect(const std::vector<std::string>& /*kinds*/,
                      const std::vector<std::string>& /*keys*/) {}
  // The newest of that kind and context; without a context any of the kind.
  virtual std::vector<StoredValue> values(const std::string& kind,
                                          const std::optional<std::string>& context,
                                          size_t most) = 0;
  // Every row, in order of kind and key; stops at the first error of `visit`.
  virtual Status for_each(const std::function<Status(const StoredRow&)>& visit) = 0;

  // Inserts or replaces.
  virtual Status put(const StoredRow& row) = 0;
  virtual Status remove(const RowName& row) = 0;
  // What is put and removed in between is written at once at the end, or not at all.
  virtual Status begin() = 0;
  virtual Status commit() = 0;
  virtual void roll_back() = 0;

  virtual Status check_integrity() { return {}; }
  virtual Status compact() { return {}; }  // gives unused space back
  virtual Result<int64_t> used_bytes() = 0;
  // Forgets the rows that were not used for longest; the number of rows.
  virtual Result<int64_t> shrink_to(int64_t /*bytes*/) { return 0; }
  virtual void mark_used(const std::set<RowName>& /*rows*/) {}
};

}  // namespace collage
