// A PostgreSQL server of the test's own: in a folder that goes with it, reached by a socket in that
// folder alone, run by another user where the test is root.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::testing {

class PostgresServer {
 public:
  // kUnavailable: none can be started here, and why.
  static Result<std::unique_ptr<PostgresServer>> start();
  ~PostgresServer();

  std::string address(const std::string& user = "owner",
                      const std::string& database = "postgres") const;
  // Runs statements, each alone; the first column of the last one's first row.
  Result<std::string> ask(const std::vector<std::string>& statements) const;
  // As a crash ends it: what was acknowledged is in its log alone.
  void crash();
  Status start_again();
  std::filesystem::path data() const { return folder_ / "data"; }

 private:
  PostgresServer() = default;
  Status initialise();
  std::string log() const;

  std::filesystem::path folder_, tools_;
  pid_t process_ = -1;
};

}  // namespace collage::testing
