// What a cost database on a server has beside those in files (database_test.cc).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "cost/database.h"
#include "cost/postgres_server.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Postgres : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = fs::temp_directory_path() / ("collage_postgres_" + std::to_string(::getpid()));
    ::setenv("COLLAGE_CACHE", cache_.c_str(), 1);  // where the spool is
    Result<std::unique_ptr<testing::PostgresServer>> server = testing::PostgresServer::start();
    if (!server) GTEST_SKIP() << "no server: " << server.status().to_string();
    server_ = std::move(server).value();
  }
  void TearDown() override {
    ::unsetenv("COLLAGE_CACHE");
    fs::remove_all(cache_);
  }
  std::unique_ptr<CostDatabase> open() {
    Result<std::unique_ptr<CostDatabase>> database = CostDatabase::open_at(server_->address());
    EXPECT_TRUE(database.ok()) << database.status().to_string();
    return std::move(database).value();
  }
  static Status refused(const std::string& address) {
    return CostDatabase::open_at(address).status();
  }
  // Runs statements; the first value of the last one's answer.
  std::string ask(const std::vector<std::string>& statements) {
    const Result<std::string> answer = server_->ask(statements);
    EXPECT_TRUE(answer.ok()) << answer.status().to_string();
    return answer ? *answer : "";
  }
  std::string count() { return ask({"SELECT count(*) FROM collage_costs"}); }

  fs::path cache_;
  std::unique_ptr<testing::PostgresServer> server_;
};

TEST_F(Postgres, WhatIsExpectedIsFetchedAtOnce) {
  {
    auto database = open();
    for (const char* key : {"a", "b", "c"}) database->put("function", key, "text", "value");
    database->put("trial", "a", "text", "tried");
    for (const char* key : {"d", "e"}) database->put("conversion", key, "text", "c", "context");
  }
  auto database = open();
  database->expect({"function", "trial"}, {"a", "b", "absent"});
  EXPECT_EQ(database->find("conversion", "d", "context"), "c");
  ask({"UPDATE collage_costs SET value = 'changed', seal = ''"});
  for (const char* key : {"a", "b"}) EXPECT_EQ(database->find("function", key), "value");
  EXPECT_EQ(database->find("trial", "a"), "tried");
  EXPECT_FALSE(database->find("trial", "b").has_value());
  EXPECT_EQ(database->find("conversion", "e", "context"), "c");
  EXPECT_FALSE(database->find("function", "c").has_value()) << "was not expected: it is asked for";
  // What is put counts, whatever was fetched.
  database->put("function", "absent", "text", "new");
  database->put("conversion", "f", "text", "new", "context");
  EXPECT_EQ(database->find("function", "absent"), "new");
  EXPECT_EQ(database->find("conversion", "f", "context"), "new");
}

// Each machine has a cache folder of its own, and a sample of its own of each row.
TEST_F(Postgres, SamplesOfANoisyMachineAnswerItAlone) {
  const auto on = [&](const std::string& machine) {
    ::setenv("COLLAGE_CACHE", (cache_ / machine).c_str(), 1);
    return open();
  };
  const auto found = [&](const std::string& machine, const std::string& key) {
    auto database = on(machine);
    const std::optional<std::string> own = database->find("function", key, "context");
    return own ? *own : database->find_foreign("function", key).value_or("none");
  };
  on("first")->put("function", "both", "text", "of the first", "context");
  on("second")->put("function", "both", "text", "of the second", "context");
  on("second")->put("function", "one", "text", "alone", "context");
  ask({"UPDATE collage_costs SET written = '2000' WHERE value = 'of the first'"});
  EXPECT_EQ(count(), "3");
  EXPECT_EQ(found("third", "both"), "of the second") << "the newest";
  EXPECT_EQ(found("third", "one"), "alone");
  ask({"INSERT INTO collage_noisy SELECT machine, 'shaky' FROM collage_costs WHERE key = 'one'"});
  EXPECT_EQ(found("third", "both"), "of the first");
  EXPECT_EQ(found("third", "one"), "none");
  EXPECT_EQ(found("second", "both"), "of the second") << "or it would measure for ever";
  int rows = 0;
  ASSERT_TRUE(on("third")->for_each([&](const CostRow&) { return ++rows, Status(); }).ok());
  EXPECT_EQ(rows, 1);
  ASSERT_TRUE(on("third")->remove("function", "both").ok());
  EXPECT_EQ(count(), "1") << "of all machines";
}

TEST_F(Postgres, ACrashOfTheServerLosesNothingThatWasAcknowledged) {
  open();
  int report[2], stop[2];
  ASSERT_EQ(::pipe2(report, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(stop, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(stop[1]);
    auto database = open();
    ::fcntl(stop[0], F_SETFL, O_NONBLOCK);
    char nothing = 0;
    for (int i = 0; ::read(stop[0], &nothing, 1) != 0; ++i) {
      database->put("function", std::to_string(i), "text", std::string(300, 'x'));
      if (::write(report[1], &i, sizeof i) != sizeof i) ::_exit(1);
    }
    database.reset();
    ::_exit(0);
  }
  ::close(report[1]);
  ::close(stop[0]);
  int last = -1;
  const auto wait_for = [&](int rows) {
    for (int n = 0; n < rows; ++n) ASSERT_EQ(::read(report[0], &last, sizeof last), 4) << n;
  };
  for (int round = 0; round < 10; ++round) {
    wait_for(1 + 37 * round % 50);
    server_->crash();
    // Twice it is away for so long that the spool is used.
    if (round % 5 == 4) wait_for(20);
    ASSERT_TRUE(server_->start_again().ok());
  }
  wait_for(20);
  ::close(stop[1]);
  while (::read(report[0], &last, sizeof last) == sizeof last) continue;
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  open();
  EXPECT_EQ(count(), std::to_string(last + 1));
  EXPECT_EQ(ask({"SELECT count(*) FROM collage_costs WHERE length(value) = 300"}),
            std::to_string(last + 1));
}

TEST_F(Postgres, WhatTheSpoolHoldsTheNextProcessWrites) {
  {
    auto database = open();
    database->put("function", "older", "text", "before");
    database->put("function", "newer", "text", "before");
    server_->crash();
    database->put("function", "older", "text", "spooled");
    database->put("function", "newer", "text", "spooled");
    database->together([&] { database->put("function", "together", "text", "spooled"); });
    EXPECT_EQ(database->find("function", "older"), "spooled");
    EXPECT_FALSE(database->transaction([&] { return database->remove("function", "newer"); }).ok());
  }
  ASSERT_TRUE(server_->start_again().ok());
  // Another machine was faster, and later.
  ask(
      {"UPDATE collage_costs SET value = 'elsewhere', written = '2999-01-01 00:00:00' "
       "WHERE key = 'newer'"});
  auto database = open();
  EXPECT_EQ(database->find("function", "older"), "spooled");
  EXPECT_EQ(database->find("function", "together"), "spooled");
  EXPECT_EQ(ask({"SELECT value FROM collage_costs WHERE key = 'newer'"}), "elsewhere");
  ask({"DELETE FROM collage_costs"});
  open();
  EXPECT_EQ(count(), "0") << "it was written once";
}

TEST_F(Postgres, AFullDiskOfTheServersIsNoLoss) {
  {
    auto database = open();
    ask(
        {"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
         "RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$",
         "CREATE TRIGGER is_full BEFORE INSERT ON collage_costs EXECUTE FUNCTION refuse()"});
    database->put("function", "a", "text", "value");
    EXPECT_EQ(database->find("function", "a"), "value");
    EXPECT_EQ(count(), "0");
  }
  open();
  EXPECT_EQ(count(), "0");
  ask({"DROP TRIGGER is_full ON collage_costs"});
  EXPECT_EQ(open()->find("function", "a"), "value");
  EXPECT_EQ(count(), "1");
}

// The server is away, and the spool's disk is full: what is measured counts for this process, which
// says so, and what was spooled before is not lost.
TEST_F(Postgres, AFullDiskOfTheSpoolLosesNothingThatWasKept) {
  auto database = open();
  server_->crash();
  database->put("function", "spooled", "text", "value");
  ::testing::internal::CaptureStderr();
  const rlimit full{1 << 17, RLIM_INFINITY};  // of a file
  const std::string large(1 << 20, 'x');
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  database->put("function", "one", "text", large);
  database->together([&] { database->put("function", "other", "text", large); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("costs are kept in memory for this run only"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  for (const char* key : {"one", "other"}) EXPECT_EQ(database->find("function", key), large) << key;
  EXPECT_EQ(database->find("function", "spooled"), "value");
  ASSERT_TRUE(server_->start_again().ok());
  database.reset();
  EXPECT_EQ(open()->find("function", "spooled"), "value");
}

TEST_F(Postgres, AnEarlierVersionIsForItsOwnerToExtend) {
  open();
  ask({"UPDATE collage_schema SET version = version - 1", "CREATE ROLE measurer LOGIN",
       "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO measurer"});
  const Status status = refused(server_->address("measurer"));
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.to_string(), HasSubstr("making its tables"));
  EXPECT_THAT(status.to_string(), Not(HasSubstr("\n")));
}

TEST_F(Postgres, AnEarlierVersionIsExtendedAndANewerOneRefused) {
  ask({"CREATE TABLE collage_schema(version int NOT NULL)", "INSERT INTO collage_schema VALUES(1)",
       "CREATE TABLE collage_costs(kind text COLLATE \"C\" NOT NULL, key text COLLATE \"C\" NOT "
       "NULL, text text NOT NULL, context text COLLATE \"C\" NOT NULL, value text NOT NULL, seal "
       "text NOT NULL, written text COLLATE \"C\" NOT NULL, used text COLLATE \"C\" NOT NULL, "
       "PRIMARY KEY(kind, key))",
       "INSERT INTO collage_costs VALUES('function', 'k', 't', 'c', 'v', '', '2020', '')"});
  EXPECT_EQ(open()->find_foreign("function", "k"), "v");
  EXPECT_EQ(ask({"SELECT version FROM collage_schema"}), "11");
  EXPECT_EQ(ask({"SELECT count(*) FROM pg_indexes WHERE indexname = 'collage_costs_context'"}),
            "1");
  ask({"UPDATE collage_schema SET version = 99"});
  const Status status = refused(server_->address());
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.to_string(), HasSubstr("version 99, of a newer Collage"));
  EXPECT_EQ(ask({"SELECT version FROM collage_schema"}), "99");
}

TEST_F(Postgres, ManyProcessesMakeTheTablesOnce) {
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(CostDatabase::open_at(server_->address()).ok() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ask({"SELECT count(*) FROM collage_schema"}), "1");
}

TEST_F(Postgres, WhoIsNotLetInIsToldSoInALine) {
  open();
  ask({"CREATE ROLE measurer LOGIN PASSWORD 'right'"});
  const fs::path rules = server_->data() / "pg_hba.conf";
  std::ofstream(rules) << "local all measurer scram-sha-256\nlocal all all trust\n";
  ask({"SELECT pg_reload_conf()"});
  const auto wrong = [&] { return refused(server_->address("measurer:wrong")).to_string(); };
  for (int n = 0; n < 500 && wrong().find("password") == std::string::npos; ++n) ::usleep(20000);
  const std::string place = server_->address();
  for (const std::string& address :
       {server_->address("measurer:secret"), server_->address("nobody"),
        server_->address("owner", "absent"), place + "/absent",
        std::string("postgresql://127.0.0.1:1/postgres"), std::string("postgresql://a:secret@[")}) {
    const Status status = refused(address);
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << address;
    EXPECT_THAT(status.to_string(), HasSubstr("cost database")) << address;
    EXPECT_THAT(status.to_string(), Not(HasSubstr("\n"))) << address;
    EXPECT_THAT(status.to_string(), Not(HasSubstr("secret"))) << address;
  }
  EXPECT_THAT(wrong(), HasSubstr("password authentication failed"));
  // Without rights the tables are of no use.
  EXPECT_THAT(refused(server_->address("measurer:right")).to_string(),
              HasSubstr("permission denied"));
}

TEST_F(Postgres, AReaderKeepsInMemoryWhatItMeasures) {
  open()->put("function", "a", "text", "value");
  ask({"CREATE ROLE reader LOGIN", "GRANT SELECT ON collage_answers, collage_schema TO reader"});
  auto database = CostDatabase::open_at(server_->address("reader")).value();
  database->put("function", "b", "text", "mine");
  database->together([&] { database->put("function", "c", "text", "mine"); });
  EXPECT_EQ(database->find("function", "a"), "value");
  for (const char* key : {"b", "c"}) EXPECT_EQ(database->find("function", key), "mine");
  EXPECT_EQ(count(), "1");
}

// Text that PostgreSQL cannot hold, and an end of the connection that a statement is in.
TEST_F(Postgres, OneBadRowIsOneBadRow) {
  auto database = open();
  const std::string nul("a\0b", 3);
  database->put("function", "nul", nul, "value");
  EXPECT_EQ(database->find("function", "nul"), "value");
  database->put("function", "good", "text", "value \\u0000");
  EXPECT_EQ(open()->find("function", "good"), "value \\u0000");
  ask(
      {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'collage' "
       "AND pid != pg_backend_pid()"});
  database->put("function", "later", "text", "value");
  EXPECT_EQ(open()->find("function", "later"), "value");
  EXPECT_EQ(count(), "2");
}

}  // namespace
}  // namespace collage
