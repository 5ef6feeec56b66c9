#include "cost/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/fingerprint.h"
#include "base/hash.h"
#include "cost/database_tools.h"
#include "measure/planted_kernel.h"
#include "measure/task.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Database : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::register_host();
    folder_ = fs::temp_directory_path() / ("collage_database_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "costs.db"; }

  static std::string quarantine(const std::string& reason) {
    return nlohmann::json{{"faulty|bad", reason}}.dump();
  }
  static std::string context(const std::string& version = "") {
    return "reference\n" +
           (version.empty() ? find_backend("reference")->traits().version : version) +
           "\nthis machine\njudged by " + judges_fingerprint();
  }
  // A row as measuring writes it.
  static void put(CostDatabase& database, const std::string& text, const std::string& value,
                  const std::string& of = context()) {
    database.put("quarantine", CostDatabase::key_of(text, of), text, value, of);
  }
  static int64_t rows(CostDatabase& database) {
    int64_t count = 0;
    EXPECT_TRUE(database
                    .for_each([&](const CostRow&) {
                      ++count;
                      return Status();
                    })
                    .ok());
    return count;
  }
  fs::path folder_;
};

TEST_F(Database, KeepsWhatWasPut) {
  {
    auto database = CostDatabase::open(file());
    database->put("function", "k", "text", "one");
    database->put("function", "k", "text", "two");
    EXPECT_FALSE(database->find("cover", "k").has_value());
  }
  EXPECT_EQ(CostDatabase::open(file())->find("function", "k"), "two");
}

TEST_F(Database, WhatIsPutTogetherIsWrittenAtOnce) {
  auto writer = CostDatabase::open(file()), reader = CostDatabase::open(file());
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

TEST_F(Database, SixteenProcessesWriteAtOnce) {
  constexpr int kProcesses = 16, kUpserts = 100, kShared = 10;
  CostDatabase::open(file());
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = ::fork();
    if (child == 0) {
      auto database = CostDatabase::open(file());
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
  auto database = CostDatabase::open(file());
  EXPECT_TRUE(database->check_integrity().ok());
  EXPECT_EQ(rows(*database), kProcesses * (kUpserts - kShared) + kShared);
}

TEST_F(Database, KillsLoseNothingThatWasAcknowledged) {
  CostDatabase::open(file());
  int acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    int report[2];
    ASSERT_EQ(::pipe(report), 0);
    pid_t child = ::fork();
    if (child == 0) {
      auto database = CostDatabase::open(file());
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
    auto database = CostDatabase::open(file());
    ASSERT_TRUE(database->on_disk());
    ASSERT_TRUE(database->check_integrity().ok());
    for (int i = 0; i < acknowledged; ++i)
      ASSERT_TRUE(database->find("function", std::to_string(i)).has_value()) << i;
  }
}

TEST_F(Database, ReadsAndExtendsAFileOfAnEarlierBuild) {
  {
    auto database = CostDatabase::open(file());
    database->put("function", "k", "text", "value");
  }
  std::string command = "import sqlite3; d=sqlite3.connect('" + file().string() +
                        "'); d.execute('alter table costs drop column context');"
                        "d.execute('alter table costs drop column used'); d.commit()";
  if (std::system(("python3 -c \"" + command + "\" 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no python3 with SQLite";
  auto database = CostDatabase::open(file());
  EXPECT_EQ(database->find("function", "k"), "value");
  put(*database, "other", quarantine("x"));
  EXPECT_EQ(rows(*database), 2);
}

TEST_F(Database, MovesAsideWhatIsNoDatabaseAndNeverWhenOnlyLooking) {
  std::ofstream(file()) << std::string(9000, '?');
  Result<std::unique_ptr<CostDatabase>> looked = CostDatabase::open_existing(file());
  EXPECT_THAT(looked.status().to_string(), HasSubstr("not a database"));
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_TRUE(CostDatabase::open(file())->on_disk());
  EXPECT_TRUE(fs::exists(file().string() + ".aside1"));
  EXPECT_EQ(CostDatabase::open_existing(folder_ / "absent.db").status().code(),
            ErrorCode::kUnavailable);
  EXPECT_FALSE(fs::exists(folder_ / "absent.db"));
}

TEST_F(Database, ExportAndImportGiveTheSameRows) {
  std::ostringstream first, second;
  {
    auto database = CostDatabase::open(file());
    for (int i = 0; i < 5; ++i) put(*database, std::to_string(i), quarantine("why\n\"not\""));
    ASSERT_TRUE(export_costs(*database, first).ok());
  }
  auto other = CostDatabase::open(folder_ / "other.db");
  std::istringstream in(first.str());
  Result<ImportCounts> counts = import_costs(*other, in);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  EXPECT_EQ(counts->added, 5);
  ASSERT_TRUE(export_costs(*other, second).ok());
  EXPECT_EQ(first.str(), second.str());
  std::istringstream again(first.str());
  EXPECT_EQ(import_costs(*other, again)->kept, 5);
}

TEST_F(Database, ImportTakesTheNewerOfTwoForeignRowsAndNoneForOnesOwn) {
  auto database = CostDatabase::open(file());
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

// Rows that were imported, edited or copied from another user's file.
TEST_F(Database, ARowThatWasNotWrittenHereIsForeign) {
  const auto edit = [&](const std::string& sql) {
    const std::string command =
        "python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
        "d.execute(sys.argv[2]); d.commit()' '" +
        file().string() + "' \"" + sql + "\"";
    return std::system(command.c_str()) == 0;
  };
  const auto is_foreign = [&](const std::string& kind) {
    auto database = CostDatabase::open(file());
    const bool found = database->find(kind, "k").has_value();
    EXPECT_NE(found, database->find_foreign(kind, "k").has_value());
    EXPECT_EQ(describe_database(*database)->foreign, found ? 0 : 1);
    database->believe_foreign(true);
    const bool is_checkable = kind == "check" || kind == "quarantine";
    EXPECT_EQ(database->find(kind, "k").has_value(), found || !is_checkable) << kind;
    return !found;
  };
  for (const std::string& kind : kRowKinds) {
    fs::remove(file());
    CostDatabase::open(file())->put(kind, "k", "text", "value");
    EXPECT_FALSE(is_foreign(kind));
    ASSERT_TRUE(edit("update costs set value = 'other'"));
    EXPECT_TRUE(is_foreign(kind)) << "edited";
    CostDatabase::open(file())->put(kind, "k", "text", "value");
    EXPECT_FALSE(is_foreign(kind)) << "found again here";
    ASSERT_TRUE(edit("update costs set seal = ''"));
    EXPECT_TRUE(is_foreign(kind)) << "of a build that seals nothing";
    CostDatabase::open(file())->put(kind, "k", "text", "value");
    ::setenv("COLLAGE_CACHE", (folder_ / "another user's").c_str(), 1);
    EXPECT_TRUE(is_foreign(kind)) << "of another user";
    ::unsetenv("COLLAGE_CACHE");
  }
}

TEST_F(Database, WhatIsRememberedIsInMemoryAlone) {
  auto database = CostDatabase::open(file());
  database->put("function", "k", "text", "kept");
  database->remember("function", "k", "of this moment");
  EXPECT_EQ(database->find("function", "k"), "of this moment");
  EXPECT_EQ(CostDatabase::open(file())->find("function", "k"), "kept");
  database->put("function", "k", "text", "anew");
  EXPECT_EQ(database->find("function", "k"), "anew");
}

TEST_F(Database, ImportRefusesWhatIsNotWholeAndThenAddsNothing) {
  auto source = CostDatabase::open(folder_ / "source.db");
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
  auto database = CostDatabase::open(file());
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

TEST_F(Database, VerifySeesAChangedKeyAndDamagedPages) {
  {
    auto database = CostDatabase::open(file());
    for (int i = 0; i < 300; ++i)
      put(*database, std::to_string(i), quarantine(std::string(100, 'x')));
    EXPECT_EQ(verify_costs(*database).value(), 300);
    database->put("quarantine", sha256_hex("else"), "text", quarantine("x"), context());
    EXPECT_THAT(verify_costs(*database).status().to_string(), HasSubstr("not that of its text"));
  }
  std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(3 * 4096);
  damage << std::string(20000, '\x5a');
  damage.close();
  Result<std::unique_ptr<CostDatabase>> database = CostDatabase::open_existing(file());
  EXPECT_FALSE(database.ok() && verify_costs(**database).ok());
}

// It depends on no backend, so that no new version of one makes it stale.
TEST_F(Database, WhatIsKnownOfTheMachineStays) {
  auto database = CostDatabase::open(file());
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

TEST_F(Database, PruneForgetsWhatIsAskedAndNoMore) {
  auto fill = [&] {
    fs::remove(file());
    auto database = CostDatabase::open(file());
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

TEST_F(Database, ASizeLimitForgetsTheLongestUnused) {
  constexpr int64_t kLimit = 1 << 20;
  auto database = CostDatabase::open(file());
  database->set_limit(kLimit);
  const std::string large(20000, 'x');
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(database
                    ->insert({"function", std::to_string(i), "text", "", large,
                              fmt::format("2020-01-{:02} 00:00:00", 1 + i / 10), ""})
                    .ok());
  EXPECT_GT(*database->used_bytes(), kLimit);
  for (int i = 0; i < 64; ++i) database->put("cover", std::to_string(i), "text", "small");
  EXPECT_LE(*database->used_bytes(), kLimit);
  EXPECT_TRUE(database->find("cover", "63").has_value());
  EXPECT_TRUE(database->find("function", "199").has_value());
  EXPECT_FALSE(database->find("function", "0").has_value());
}

TEST_F(Database, ASizeLimitSparesWhatWasUsedLately) {
  auto database = CostDatabase::open(file());
  const std::string large(20000, 'x');
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(database
                    ->insert({"function", std::to_string(i), "text", "", large,
                              fmt::format("2020-01-{:02} 00:00:00", 1 + i / 10),
                              i < 20 ? "2021-01-01 00:00:00" : ""})
                    .ok());
  ASSERT_GT(database->shrink_to(*database->used_bytes() / 2).value(), 0);
  auto is_there = [&](int i) { return database->find("function", std::to_string(i)).has_value(); };
  for (const int i : {0, 19, 99}) EXPECT_TRUE(is_there(i)) << i;
  for (const int i : {20, 40}) EXPECT_FALSE(is_there(i)) << i;
}

TEST_F(Database, WhatIsUsedOutlivesWhatIsNot) {
  const std::string large(200000, 'v');
  {
    auto database = CostDatabase::open(file());
    for (const char* key : {"a", "b"})
      ASSERT_TRUE(
          database->insert({"cover", key, "text", "", large, "2020-01-01 00:00:00", ""}).ok());
  }
  CostDatabase::open(file())->find("cover", "a");
  auto database = CostDatabase::open(file());
  EXPECT_EQ(database->shrink_to(*database->used_bytes() * 3 / 4).value(), 1);
  EXPECT_TRUE(database->find("cover", "a").has_value());
}

}  // namespace
}  // namespace collage
