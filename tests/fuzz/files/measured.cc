#include "fuzz/files/measured.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "fuzz/fuzz.h"
#include "measure/task.h"

namespace collage::fuzz {
namespace {

constexpr const char* kModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 16, 6, 6), float32], %y: Tensor[(1, 36), float32]) {
  %0 = nn.relu(%x);
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  %2 = nn.softmax(reshape(%1, newshape=[4, 36]));
  (add(%2, %y), exp(%0))
}
)";

Measured measure() {
  Measured made;
  const std::filesystem::path folder = std::filesystem::path(scratch_folder()) / "measured";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.relay") << kModel;
  const char* command = std::getenv("COLLAGE_BIN");
  if (command == nullptr) {
    ADD_FAILURE() << "COLLAGE_BIN is not set: run this with ctest";
    return made;
  }
  const std::string line = fmt::format(
      "cd '{0}' && XDG_CACHE_HOME='{0}' '{1}' run model.relay --targets native,onednn "
      "--threads {2} --effort fast --db costs.db --json report.json > out.txt 2>&1",
      folder.string(), command, kMeasuredThreads);
  EXPECT_EQ(std::system(line.c_str()), 0) << *read_file(folder / "out.txt");
  const Result<std::string> report = read_file(folder / "report.json");
  if (report.ok()) made.report = parse_json(*report);
  const auto database = CostDatabase::open_existing(folder / "costs.db");
  EXPECT_TRUE(database.ok()) << database.status().to_string();
  if (!database.ok()) return made;
  const Status read = (*database)->for_each([&](const CostRow& row) {
    made.rows.push_back(row);
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.to_string();
  EXPECT_FALSE(made.rows.empty());
  return made;
}

}  // namespace

const Measured& measured() {
  static const Measured made = measure();
  return made;
}

}  // namespace collage::fuzz
