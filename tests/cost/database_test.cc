#include "cost/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "artifact/signing_keys.h"
#include "base/hash.h"
#include "cost/database_fixture.h"
#include "cost/database_tools.h"
#include "cost/postgres_connection.h"
#include "cost/postgres_server.h"
#include "measure/task.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Database : public testing::DatabaseFile, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    DatabaseFile::SetUp();
    if (std::string(GetParam()) == "File") return;
    Result<std::unique_ptr<testing::PostgresServer>> server = testing::PostgresServer::start();
    if (!server) GTEST_SKIP() << "no server: " << server.status().to_string();
    server_ = std::move(server).value();
  }
  std::unique_ptr<CostDatabase> open(const std::string& name = "costs") {
    Result<std::unique_ptr<CostDatabase>> database = CostDatabase::open_at(place(name));
    EXPECT_TRUE(database.ok()) << database.status().to_string();
    return std::move(database).value();
  }
  // Of one name a process sees one database.
  std::string place(const std::string& name) {
    if (server_ == nullptr) return (folder_ / (name + ".db")).string();
    if (names_.insert(name).second) {
      const Result<std::string> made = server_->ask({"CREATE DATABASE " + name});
      EXPECT_TRUE(made.ok()) << made.status().to_string();
    }
    return server_->address("owner", name);
  }
  // Changes rows behind the program's back.
  void edit(const std::string& change) {
    if (server_ != nullptr) {
      const auto connection = PostgresConnection::open(place("costs"));
      const Status changed =
          (*connection)->ask(("UPDATE collage_costs SET " + change).c_str()).status();
      EXPECT_TRUE(changed.ok()) << changed.to_string();
      return;
    }
    const std::string command =
        "python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
        "d.execute(\"UPDATE costs SET \" + sys.argv[2]); d.commit()' '" +
        file().string() + "' \"" + change + "\"";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  void forget_all(const std::string& name = "costs") {
    PruneOptions all;
    all.all = true;
    EXPECT_TRUE(prune_costs(*open(name), all).ok());
  }

 private:
  std::unique_ptr<testing::PostgresServer> server_;
  std::set<std::string> names_;
};

INSTANTIATE_TEST_SUITE_P(Of, Database, ::testing::Values("File", "Server"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Database, KeepsWhatWasPut) {
  {
    auto database = open();
    database->put("function", "k", "text", "one");
    database->put("function", "k", "text", "two");
    EXPECT_FALSE(database->find("cover", "k").has_value());
  }
  EXPECT_EQ(open()->find("function", "k"), "two");
}

TEST_P(Database, WhatIsPutTogetherIsWrittenAtOnce) {
  auto writer = open(), reader = open();
  writer->together([&] {
    writer->put("function", "a", "text", "one");
    writer->put("function", "b", "text", "two");
    EXPECT_EQ(writer->find("function", "a"), "one");
    EXPECT_FALSE(reader->find("function", "a").has_value());
  });
  EXPECT_EQ(reader->find("function", "a"), "one");
  EXPECT_EQ(reader->find("function", "b"), "two");
  auto in_memory = CostDatabase::in_memory();
  in_memory->together([&] { in_memory->put("function", "a", "text", "one"); });
  EXPECT_EQ(in_memory->find("function", "a"), "one");
}

TEST_P(Database, ManyProcessesWriteAtOnce) {
  const bool on_server = std::string(GetParam()) == "Server";
  const int kProcesses = on_server ? 32 : 16, kUpserts = on_server ? 1000 : 100, kShared = 10;
  open();
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = ::fork();
    if (child == 0) {
      auto database = open();
      for (int i = 0; i < kUpserts; ++i) {
        // Some keys are everybody's: they must not become duplicates.
        std::string key = i < kShared ? fmt::format("shared {}", i) : fmt::format("{} {}", p, i);
        database->put("function", key, "text", "value of " + key);
        if (!database->on_disk() || database->find("function", key) != "value of " + key)
          ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  auto database = open();
  EXPECT_TRUE(database->check_integrity().ok());
  EXPECT_EQ(rows(*database), kProcesses * (kUpserts - kShared) + kShared);
}

TEST_P(Database, KillsLoseNothingThatWasAcknowledged) {
  open();
  int acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    int report[2];
    ASSERT_EQ(::pipe(report), 0);
    pid_t child = ::fork();
    if (child == 0) {
      auto database = open();
      for (int i = acknowledged;; ++i) {
        database->put("function", std::to_string(i), "text", std::string(3000, 'x'));
        if (::write(report[1], &i, sizeof i) != sizeof i) ::_exit(1);
      }
    }
    ::close(report[1]);
    int last = -1;
    for (int n = 0; n < 1 + round % 3; ++n) ASSERT_EQ(::read(report[0], &last, sizeof last), 4);
    ::usleep(static_cast<useconds_t>(round * 397 % 3000));
    ::kill(child, SIGKILL);
    while (::read(report[0], &last, sizeof last) == sizeof last) continue;
    ::waitpid(child, nullptr, 0);
    ::close(report[0]);
    acknowledged = last + 1;
    auto database = open();
    ASSERT_TRUE(database->on_disk());
    ASSERT_TRUE(database->check_integrity().ok());
    for (int i = 0; i < acknowledged; ++i)
      ASSERT_TRUE(database->find("function", std::to_string(i)).has_value()) << i;
  }
}

TEST_P(Database, ExportAndImportGiveTheSameRows) {
  std::ostringstream first, second;
  {
    auto database = open();
    for (int i = 0; i < 5; ++i) put(*database, std::to_string(i), quarantine("why\n\"not\""));
    ASSERT_TRUE(export_costs(*database, first).ok());
  }
  auto other = open("other");
  std::istringstream in(first.str());
  Result<ImportCounts> counts = import_costs(*other, in);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  EXPECT_EQ(counts->added, 5);
  ASSERT_TRUE(export_costs(*other, second).ok());
  EXPECT_EQ(first.str(), second.str());
  std::istringstream again(first.str());
  EXPECT_EQ(import_costs(*other, again)->kept, 5);
}

TEST_P(Database, ImportTakesTheNewerOfTwoForeignRowsAndNoneForOnesOwn) {
  auto database = open();
  const std::string key = CostDatabase::key_of("a", context());
  put(*database, "a", quarantine("here"));
  std::ostringstream out;
  ASSERT_TRUE(export_costs(*database, out).ok());
  const auto import = [&](const char* year, const char* reason) {
    std::string text = out.str();
    text.replace(text.find("here"), 4, reason);
    text.replace(text.find("\"written\":\"") + 11, 4, year);
    std::istringstream in(text);
    return import_costs(*database, in).value();
  };
  EXPECT_EQ(import("2999", "else").kept, 1);
  EXPECT_EQ(database->find("quarantine", key), quarantine("here"));
  ASSERT_TRUE(database->remove("quarantine", key).ok());
  EXPECT_EQ(import("2020", "there").added, 1);
  EXPECT_EQ(import("1999", "else").kept, 1);
  EXPECT_EQ(database->find_foreign("quarantine", key), quarantine("there"));
  EXPECT_EQ(import("2021", "anew").replaced, 1);
  EXPECT_EQ(database->find_foreign("quarantine", key), quarantine("anew"));
}

TEST_P(Database, SignedRowsCountAndOthersAreRefused) {
  const SigningKey key = SigningKey::parse(testing::kPrivateKey).value();
  const PublicKey owner = PublicKey::parse(testing::kPublicKey).value();
  std::ostringstream out, unsigned_rows;
  auto source = open("source");
  put(*source, "a", R"({"faulty|bad": {"invalid": "why", "waited": 1.50e-7}})");
  put(*source, "b", quarantine("else"));
  ASSERT_TRUE(export_costs(*source, out, &key).ok());
  ASSERT_TRUE(export_costs(*source, unsigned_rows).ok());
  auto database = open();
  const auto import = [&](std::string text, const PublicKey& by, const std::string& what = "",
                          const std::string& with = "") {
    if (!what.empty()) text.replace(text.rfind(what), what.size(), with);
    std::istringstream in(text);
    const Result<ImportCounts> counts = import_costs(*database, in, &by);
    EXPECT_TRUE(counts || rows(*database) == 0) << "all of them or none";
    return counts ? "" : counts.status().to_string();
  };
  const PublicKey other = PublicKey::parse(testing::kOtherPublicKey).value();
  EXPECT_THAT(import(unsigned_rows.str(), owner), HasSubstr("line 2: it is not signed"));
  const char* refused = "it was changed, or another key signed it";
  EXPECT_THAT(import(out.str(), other), HasSubstr(refused));
  for (const auto& [what, with] : {std::pair{"else", "more"},
                                   {"\"written\":\"2", "\"written\":\"1"},
                                   {"quarantine", "function"}})
    EXPECT_THAT(import(out.str(), owner, what, with), HasSubstr(refused));
  ASSERT_EQ(import(out.str(), owner), "");
  EXPECT_EQ(describe_database(*database)->foreign, 0);
  const std::string row = CostDatabase::key_of("b", context());
  EXPECT_EQ(database->find("quarantine", row), quarantine("else"));
  // Without the owner's key they are an import like any other, which replaces nothing of one's own.
  std::istringstream in(out.str());
  EXPECT_EQ(import_costs(*open("third"), in)->added, 2);
  EXPECT_EQ(describe_database(*open("third"))->foreign, 2);
}

TEST_P(Database, WhatATrustedKeySignedIsNotForeign) {
  const auto be = [&](const char* who, const char* name, const char* key) {
    const fs::path cache = folder_ / who;
    fs::create_directory(cache);
    fs::permissions(cache, fs::perms::owner_all);
    std::ofstream(cache / name) << key;
    ::setenv("COLLAGE_CACHE", cache.c_str(), 1);
  };
  be("fleet", "signing.pem", testing::kPrivateKey);
  open()->put("function", "k", "text", "value");
  EXPECT_EQ(open()->find("function", "k"), "value");
  be("laptop", "trusted.pem", testing::kPublicKey);
  EXPECT_EQ(open()->find("function", "k"), "value");
  open()->put("function", "own", "text", "value");
  be("stranger", "trusted.pem", testing::kOtherPublicKey);
  EXPECT_FALSE(open()->find("function", "k").has_value());
  be("fleet", "signing.pem", testing::kPrivateKey);
  EXPECT_FALSE(open()->find("function", "own").has_value()) << "who trusts signs nothing";
  be("laptop", "trusted.pem", testing::kPublicKey);
  edit("value = 'other' WHERE key = 'k'");
  EXPECT_FALSE(open()->find("function", "k").has_value());
  ::unsetenv("COLLAGE_CACHE");
}

// Rows that were imported, edited or copied from another user's file.
TEST_P(Database, ARowThatWasNotWrittenHereIsForeign) {
  const auto is_foreign = [&](const std::string& kind) {
    auto database = open();
    const bool found = database->find(kind, "k").has_value();
    EXPECT_NE(found, database->find_foreign(kind, "k").has_value());
    EXPECT_EQ(describe_database(*database)->foreign, found ? 0 : 1);
    database->believe_foreign(true);
    const bool is_checkable = kind == "check" || kind == "quarantine";
    EXPECT_EQ(database->find(kind, "k").has_value(), found || !is_checkable) << kind;
    return !found;
  };
  for (const std::string& kind : kRowKinds) {
    forget_all();
    open()->put(kind, "k", "text", "value");
    EXPECT_FALSE(is_foreign(kind));
    edit("value = 'other'");
    EXPECT_TRUE(is_foreign(kind)) << "edited";
    open()->put(kind, "k", "text", "value");
    EXPECT_FALSE(is_foreign(kind)) << "found again here";
    edit("seal = ''");
    EXPECT_TRUE(is_foreign(kind)) << "of a build that seals nothing";
    open()->put(kind, "k", "text", "value");
    ::setenv("COLLAGE_CACHE", (folder_ / "another user's").c_str(), 1);
    EXPECT_TRUE(is_foreign(kind)) << "of another user";
    ::unsetenv("COLLAGE_CACHE");
  }
}

TEST_P(Database, WhatIsRememberedIsInMemoryAlone) {
  auto database = open();
  database->put("function", "k", "text", "kept");
  database->remember("function", "k", "of this moment");
  EXPECT_EQ(database->find("function", "k"), "of this moment");
  EXPECT_EQ(open()->find("function", "k"), "kept");
  database->put("function", "k", "text", "anew");
  EXPECT_EQ(database->find("function", "k"), "anew");
}

TEST_P(Database, ImportRefusesWhatIsNotWholeAndThenAddsNothing) {
  auto source = open("source");
  put(*source, "a", quarantine("x"));
  put(*source, "b", quarantine("y"));
  std::ostringstream out;
  ASSERT_TRUE(export_costs(*source, out).ok());
  auto damaged = [&](const std::string& what, const std::string& with) {
    std::string text = out.str();
    size_t at = text.rfind(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
  };
  auto database = open();
  for (const std::string& text :
       {std::string(), std::string("no JSON\n"), damaged("{\"collage_costs\":1}", "{\"x\":1}"),
        damaged("{\"collage_costs\":1}", "{\"collage_costs\":2}"), damaged("quarantine", "else"),
        damaged("\"text\"", "\"test\""), damaged("this machine", "that machine"),
        damaged("\"written\":\"2", "\"written\":\"two"), damaged("}\n", "\n"),
        damaged("\"value\":{", "\"value\":1,\"v\":{")}) {
    std::istringstream in(text);
    Result<ImportCounts> counts = import_costs(*database, in);
    EXPECT_EQ(counts.status().code(), ErrorCode::kBadModel) << text;
    EXPECT_THAT(counts.status().to_string(), HasSubstr("line ")) << text;
    EXPECT_EQ(rows(*database), 0) << text;
  }
}

TEST_P(Database, VerifySeesAChangedKey) {
  auto database = open();
  for (int i = 0; i < 300; ++i)
    put(*database, std::to_string(i), quarantine(std::string(100, 'x')));
  EXPECT_EQ(verify_costs(*database).value(), 300);
  database->put("quarantine", sha256_hex("else"), "text", quarantine("x"), context());
  EXPECT_THAT(verify_costs(*database).status().to_string(), HasSubstr("not that of its text"));
}

TEST_P(Database, AveragesWhatFewRowsSay) {
  auto database = open();
  const auto average = [&] { return database->average("function", "/seconds", "/effort", "fast"); };
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(average().has_value()) << i;
    database->put("function", std::to_string(i), "text",
                  nlohmann::json{{"seconds", i}, {"effort", "fast"}}.dump());
  }
  for (const char* other : {R"({"seconds":90,"effort":"max"})", R"({"seconds":-1,"effort":"fast"})",
                            R"({"effort":"fast"})", "no JSON", "[1]"})
    database->put("function", other, "text", other);
  EXPECT_EQ(average(), 2.0);
}

// It depends on no backend, so that no new version of one makes it stale.
TEST_P(Database, WhatIsKnownOfTheMachineStays) {
  auto database = open();
  const auto known = [&](const std::string& value) {
    database->put("machine", CostDatabase::key_of("contention", "a processor"), "contention", value,
                  "a processor");
  };
  known(R"({"contention":1.1})");
  EXPECT_EQ(verify_costs(*database).value(), 1);
  PruneOptions options;
  options.stale = options.refused = true;
  EXPECT_TRUE(prune_costs(*database, options).ok());
  EXPECT_EQ(rows(*database), 1);
  known(R"({"contention":"little"})");
  EXPECT_THAT(verify_costs(*database).status().to_string(), HasSubstr("no number"));
}

TEST_P(Database, PruneForgetsWhatIsAskedAndNoMore) {
  auto fill = [&] {
    forget_all();
    auto database = open();
    put(*database, "current", quarantine("x"));
    put(*database, "stale", quarantine("x"), context("another version"));
    TargetCosts costs;
    costs.target = "reference";
    costs.variants = {{{"v", {}, {}}, Measured{1, 1, 1, 3}}};
    std::string key = CostDatabase::key_of("f", context());
    database->put("function", key, "f", to_json(costs).dump(), context());
    return database;
  };
  auto left = [&](const PruneOptions& options, int64_t expected_forgotten) {
    auto database = fill();
    EXPECT_EQ(prune_costs(*database, options).value(), expected_forgotten);
    return rows(*database);
  };
  PruneOptions stale, refused, kind, all;
  stale.stale = true;
  refused.refused = true;
  kind.kinds = {"function"};
  all.all = true;
  EXPECT_EQ(left(stale, 1), 2);
  EXPECT_EQ(left(refused, 2), 1);
  EXPECT_EQ(left(kind, 1), 2);
  EXPECT_EQ(left(all, 3), 0);
  EXPECT_EQ(describe_database(*fill())->stale, 1);
}

}  // namespace
}  // namespace collage
