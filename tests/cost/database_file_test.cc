// What a cost database in a file has beside those on servers (database_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cost/database_fixture.h"
#include "cost/database_tools.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using testing::DatabaseFile;
using ::testing::HasSubstr;

TEST_F(DatabaseFile, ReadsAndExtendsAFileOfAnEarlierBuild) {
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

TEST_F(DatabaseFile, MovesAsideWhatIsNoDatabaseAndNeverWhenOnlyLooking) {
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

TEST_F(DatabaseFile, VerifySeesDamagedPages) {
  {
    auto database = CostDatabase::open(file());
    for (int i = 0; i < 300; ++i)
      put(*database, std::to_string(i), quarantine(std::string(100, 'x')));
  }
  std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(3 * 4096);
  damage << std::string(20000, '\x5a');
  damage.close();
  Result<std::unique_ptr<CostDatabase>> database = CostDatabase::open_existing(file());
  EXPECT_FALSE(database.ok() && verify_costs(**database).ok());
}

TEST_F(DatabaseFile, ASizeLimitForgetsTheLongestUnused) {
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

TEST_F(DatabaseFile, ASizeLimitSparesWhatWasUsedLately) {
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

TEST_F(DatabaseFile, WhatIsUsedOutlivesWhatIsNot) {
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
