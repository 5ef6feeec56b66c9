// What a cost database holds.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cost/database.h"

namespace collage::testing {

inline std::vector<CostRow> rows_of_kind(const std::filesystem::path& database,
                                         const std::string& kind) {
  std::vector<CostRow> found;
  const Status read = CostDatabase::open(database)->for_each([&](const CostRow& row) {
    if (row.kind == kind) found.push_back(row);
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.to_string();
  return found;
}

}  // namespace collage::testing
