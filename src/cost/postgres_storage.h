// Rows in a table of a PostgreSQL server (postgres_tables.h), which any number of machines share.
// Each write is a transaction, or part of one, and is repeated where the connection was lost on the
// way: writing a row twice gives one row.
//
// Where the server stays away, what is written goes to a spool, a file of SQLite in the cache
// folder, and from there to the server as soon as it answers, to this process or a later one. Of
// two rows the newer stays. What is read then is what is in the spool, and what was fetched before.
//
// Calls wait for the network, so rows are fetched many at a time (cost_storage.h); those are read
// once in the life of this object.
#pragma once

#include <chrono>
#include <map>
#include <memory>

#include "cost/cost_storage.h"
#include "cost/postgres_connection.h"
#include "cost/sqlite_storage.h"

namespace collage {

class PostgresStorage : public CostStorage {
 public:
  static bool is_address(const std::string& place);  // postgresql://…
  // Makes or extends the tables where they are of an earlier version. kUnavailable, with the
  // server's reason, where that cannot be done, or they are of a newer one.
  static Result<std::unique_ptr<PostgresStorage>> open(const std::string& address);
  ~PostgresStorage() override;

  std::string name() const override { return name_; }
  bool is_server() const override { return true; }
  std::optional<StoredValue> find(const RowName& row, const std::string& context) override;
  void expect(const std::vector<std::string>& kinds, const std::vector<std::string>& keys) override;
  std::vector<StoredValue> values(const std::string& kind,
                                  const std::optional<std::string>& context, size_t most) override;
  Status for_each(const std::function<Status(const StoredRow&)>& visit) override;
  Status put(const StoredRow& row) override;
  Status remove(const RowName& row) override;
  Status begin() override;
  Status commit() override;
  void roll_back() override { batch_.reset(); }
  Result<int64_t> used_bytes() override;

 private:
  using Batch = std::map<RowName, std::optional<StoredRow>>;  // none: it is removed
  using Work = std::function<Status(PostgresConnection&)>;

  explicit PostgresStorage(std::string address) : address_(std::move(address)) {}
  // Connects, and brings the server what the spool holds.
  Status connect();
  // Does it on a connection, anew where that is lost; kUnavailable where the server stays away.
  Status on_server(const Work& work);
  Result<PostgresAnswer> ask(const char* sql, const std::vector<std::string>& values);
  Status write(const Batch& batch);
  // To the file, as what is acknowledged.
  Status spool(const Batch& batch, const Status& why);
  Status open_spool();
  Status send_spool();
  void fetch_context(const std::string& context);

  const std::string address_;
  std::string name_;
  std::unique_ptr<PostgresConnection> connection_;  // null: the server is away
  std::unique_ptr<SqliteStorage> spool_;            // null: not needed yet
  std::optional<Batch> batch_;                      // of what begin() began
  std::map<RowName, std::optional<StoredValue>> fetched_;
  std::map<std::string, bool> contexts_;                // that were fetched; whether whole
  std::map<RowName, std::vector<StoredValue>> listed_;  // by kind and context
  std::string away_;                                    // why
  std::chrono::steady_clock::time_point next_try_ = {};
  bool told_of_spool_ = false, is_spooled_ = false;
};

}  // namespace collage
