// A folder for cost databases, and rows as measuring writes them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "backend/fingerprint.h"
#include "cost/database.h"
#include "measure/planted_kernel.h"

namespace collage::testing {

class DatabaseFile : public ::testing::Test {
 protected:
  void SetUp() override {
    register_host();
    folder_ =
        std::filesystem::temp_directory_path() / ("collage_database_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file() const { return folder_ / "costs.db"; }

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
  std::filesystem::path folder_;
};

}  // namespace collage::testing
