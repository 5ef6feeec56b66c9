#include "cost/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/files.h"
#include "cost/postgres_connection.h"

namespace collage::testing {

namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

// Starts a program as a user without rights, its words going to a file; it ends with this process.
pid_t start_process(std::vector<std::string> command, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int words = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  ::dup2(words, 1);
  ::dup2(words, 2);
  if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 ||
                           ::setuid(kNobody) != 0 || ::chdir("/") != 0))
    ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

// Where Debian keeps the programs of the newest version that is installed; empty: nowhere.
fs::path find_tools() {
  fs::path found;
  std::error_code ec;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ec))
    if (fs::exists(version.path() / "bin" / "initdb", ec) && version.path() > found)
      found = version.path();
  return found.empty() ? found : found / "bin";
}

}  // namespace

Result<std::unique_ptr<PostgresServer>> PostgresServer::start() {
  std::unique_ptr<PostgresServer> server(new PostgresServer);
  server->tools_ = find_tools();
  if (server->tools_.empty())
    return error(ErrorCode::kUnavailable, "PostgreSQL is not installed (Debian: postgresql)");
  TRY(server->initialise());
  TRY(server->start_again());
  return server;
}

Status PostgresServer::initialise() {
  std::string made = (fs::temp_directory_path() / "collage_server_XXXXXX").string();
  if (::mkdtemp(made.data()) == nullptr) return internal_error("no folder {}", made);
  folder_ = made;
  if (::geteuid() == 0 && ::chown(made.c_str(), kNobody, kNobody) != 0)
    return error(ErrorCode::kUnavailable, "{} cannot be given away", made);
  const pid_t child = start_process({tools_ / "initdb", "-D", data(), "-U", "owner", "-A", "trust",
                                     "-E", "UTF8", "--locale=C", "--no-sync"},
                                    folder_ / "log");
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? Status() : error(ErrorCode::kUnavailable, "initdb failed: {}", log());
}

Status PostgresServer::start_again() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    // After a crash parts of the former one may be there still, and this one ends.
    if (process_ < 0 || ::waitpid(process_, nullptr, WNOHANG) == process_)
      process_ = start_process(
          {tools_ / "postgres", "-D", data(), "-k", folder_, "-c", "listen_addresses=", "-c",
           "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=80"},
          folder_ / "log");
    if (PostgresConnection::open(address())) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return error(ErrorCode::kUnavailable, "the server does not start: {}", log());
}

void PostgresServer::crash() {
  if (process_ <= 0) return;
  ::kill(process_, SIGQUIT);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

PostgresServer::~PostgresServer() {
  crash();
  std::error_code ec;
  fs::remove_all(folder_, ec);
}

std::string PostgresServer::address(const std::string& user, const std::string& database) const {
  return "postgresql://" + user + "@/" + database + "?host=" + folder_.string();
}

Result<std::string> PostgresServer::ask(const std::vector<std::string>& statements) const {
  std::unique_ptr<PostgresConnection> connection = TRY(PostgresConnection::open(address()));
  std::string last;
  for (const std::string& statement : statements) {
    const PostgresAnswer answer = TRY(connection->ask(statement.c_str()).with_context(statement));
    last = answer.rows() > 0 ? answer.text(0, 0) : "";
  }
  return last;
}

std::string PostgresServer::log() const {
  const Result<std::string> text = read_file(folder_ / "log");
  return text ? text->substr(text->size() - std::min<size_t>(text->size(), 1000)) : "";
}

}  // namespace collage::testing
