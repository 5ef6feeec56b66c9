#include "cost/postgres_connection.h"

#include <dlfcn.h>
#include <postgresql/libpq-fe.h>

#include <cstdlib>
#include <string_view>

#include "base/library_beside.h"
#include "base/printable.h"

namespace collage {

namespace {

constexpr const char* kLibrary = "libpq.so.5";

struct Library {
  decltype(&::PQconnectdbParams) connect;
  decltype(&::PQfinish) finish;
  decltype(&::PQstatus) status;
  decltype(&::PQerrorMessage) message;
  decltype(&::PQhost) host;
  decltype(&::PQport) port;
  decltype(&::PQdb) database;
  decltype(&::PQsetNoticeProcessor) set_notices;
  decltype(&::PQexecParams) execute;
  decltype(&::PQresultStatus) result_status;
  decltype(&::PQresultErrorField) error_field;
  decltype(&::PQntuples) rows;
  decltype(&::PQgetvalue) value;
  decltype(&::PQgetlength) length;
  decltype(&::PQclear) clear;
};

Result<Library> load_library() {
  void* handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return error(ErrorCode::kUnavailable,
                 "{} is not installed, which PostgreSQL needs (Debian package libpq5)", kLibrary);
  Library library{};
  TRY(find_function(handle, "PQconnectdbParams", library.connect));
  TRY(find_function(handle, "PQfinish", library.finish));
  TRY(find_function(handle, "PQstatus", library.status));
  TRY(find_function(handle, "PQerrorMessage", library.message));
  TRY(find_function(handle, "PQhost", library.host));
  TRY(find_function(handle, "PQport", library.port));
  TRY(find_function(handle, "PQdb", library.database));
  TRY(find_function(handle, "PQsetNoticeProcessor", library.set_notices));
  TRY(find_function(handle, "PQexecParams", library.execute));
  TRY(find_function(handle, "PQresultStatus", library.result_status));
  TRY(find_function(handle, "PQresultErrorField", library.error_field));
  TRY(find_function(handle, "PQntuples", library.rows));
  TRY(find_function(handle, "PQgetvalue", library.value));
  TRY(find_function(handle, "PQgetlength", library.length));
  TRY(find_function(handle, "PQclear", library.clear));
  return library;
}

const Result<Library>& loaded() {
  static const Result<Library> library = load_library();
  return library;
}

// Only where there is a connection.
const Library& library() { return *loaded(); }

// Several lines in one.
std::string one_line(const char* message) {
  std::string line;
  for (const std::string_view text(message != nullptr ? message : ""); const char c : text) {
    if (c == '\n') {
      line += "; ";
    } else if (c != '\t') {
      line += c;
    }
  }
  while (line.ends_with("; ")) line.resize(line.size() - 2);
  return printable(line, 500);
}

// By the class of SQLSTATE: resources (53), the operator or a restart (57), I/O (58), conflicts of
// transactions (40), the connection (08).
bool may_pass(std::string_view state) {
  for (const char* passing : {"53", "57", "58", "40", "08"})
    if (state.starts_with(passing)) return true;
  return false;
}

// A table, a column or a schema.
bool is_of_absent(std::string_view state) {
  return state == "42P01" || state == "42703" || state == "3F000";
}

}  // namespace

PostgresAnswer::PostgresAnswer(pg_result* result) : result_(result, library().clear) {}

int PostgresAnswer::rows() const { return library().rows(result_.get()); }

std::string PostgresAnswer::text(int row, int column) const {
  return {library().value(result_.get(), row, column),
          static_cast<size_t>(library().length(result_.get(), row, column))};
}

int64_t PostgresAnswer::number(int row, int column) const {
  return std::strtoll(text(row, column).c_str(), nullptr, 10);
}

PostgresConnection::PostgresConnection(pg_conn* connection)
    : connection_(connection, library().finish) {}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(const std::string& address) {
  TRY(loaded().status());
  // What comes later counts: the address says what it likes of these.
  const char* names[] = {
      "connect_timeout", "keepalives_idle",           "keepalives_count", "tcp_user_timeout",
      "client_encoding", "fallback_application_name", "dbname",           nullptr};
  const char* values[] = {"5", "20", "3", "30000", "UTF8", "collage", address.c_str(), nullptr};
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(library().connect(names, values, /*expand_dbname=*/1)));
  pg_conn* raw = connection->connection_.get();
  if (library().status(raw) != CONNECTION_OK) {
    std::string why = one_line(library().message(raw));
    if (const size_t at = why.find(address); at != std::string::npos)
      why.replace(at, address.size(), "postgresql://...");
    return error(ErrorCode::kUnavailable, "{}", why);
  }
  library().set_notices(
      raw, [](void*, const char*) {}, nullptr);
  return connection;
}

std::string PostgresConnection::server() const {
  pg_conn* raw = connection_.get();
  return fmt::format("postgresql://{}:{}/{}", library().host(raw), library().port(raw),
                     library().database(raw));
}

Result<PostgresAnswer> PostgresConnection::ask(const char* sql,
                                               const std::vector<std::string>& values) {
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  pg_conn* raw = connection_.get();
  pg_result* result = library().execute(raw, sql, static_cast<int>(texts.size()), nullptr,
                                        texts.data(), nullptr, nullptr, /*resultFormat=*/0);
  PostgresAnswer answer(result);
  const ExecStatusType status = library().result_status(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return answer;
  const char* field = library().error_field(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field != nullptr ? field : "";
  // libpq's own errors have no SQLSTATE.
  is_lost_ = is_lost_ || state.empty() || library().status(raw) != CONNECTION_OK;
  const ErrorCode code = is_lost_ || may_pass(state) ? ErrorCode::kUnavailable
                         : is_of_absent(state)       ? ErrorCode::kUnsupported
                                                     : ErrorCode::kInternal;
  return error(code, "{}", one_line(library().message(raw)));
}

Status PostgresConnection::in_transaction(const std::function<Status()>& body) {
  TRY(ask("BEGIN"));
  Status status = body();
  if (status.ok()) return ask("COMMIT").status();
  if (!is_lost_) (void)ask("ROLLBACK");
  return status;
}

}  // namespace collage
