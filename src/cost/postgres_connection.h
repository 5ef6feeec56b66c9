// A connection to a PostgreSQL server, by libpq, which is loaded when the first is opened: nothing
// else needs it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct pg_conn;
struct pg_result;

namespace collage {

// The rows of an answer, as text.
class PostgresAnswer {
 public:
  explicit PostgresAnswer(pg_result* result);
  int rows() const;
  std::string text(int row, int column) const;
  int64_t number(int row, int column) const;  // 0: it is none

 private:
  std::shared_ptr<pg_result> result_;
};

class PostgresConnection {
 public:
  // `address`: postgresql://…, as libpq reads it. kUnavailable, in a line without passwords.
  static Result<std::unique_ptr<PostgresConnection>> open(const std::string& address);
  // "postgresql://host:port/database", without user and password.
  std::string server() const;

  // Runs one statement with $1, $2 … kUnavailable where another moment may help: the connection is
  // lost, or the server goes down or lacks memory or disk; kUnsupported: it names what is not
  // there.
  Result<PostgresAnswer> ask(const char* sql, const std::vector<std::string>& values = {});
  // All that `body` asks, or nothing.
  Status in_transaction(const std::function<Status()>& body);
  bool is_lost() const { return is_lost_; }

 private:
  explicit PostgresConnection(pg_conn* connection);
  std::shared_ptr<pg_conn> connection_;
  bool is_lost_ = false;
};

}  // namespace collage
