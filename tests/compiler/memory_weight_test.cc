// Memory beside latency: what covers keep is known, the front is marked, and a weight decides.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>

#include "compiler/given_model.h"
#include "report/report.h"

namespace collage {
namespace {

class Memory : public testing::GivenModel {
 protected:
  Memory()
      : GivenModel(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 24, 24), float32], %w: Tensor[(16, 8, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = floor(nn.relu(%0));
  nn.softmax(add(%1, tanh(%1)))
}
)") {}

  CompileReport compiled() {
    const Result<Program> program = compile_model(model_of(given_), options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return program ? program->impl().report : CompileReport();
  }
};

TEST_F(Memory, IsKnownOfCoversThatWereTimed) {
  std::map<std::string, size_t> bytes;
  for (const ReportedPlan& cover : compiled().covers)
    if (cover.measured) bytes[cover.name] = cover.bytes;
  EXPECT_GE(bytes.size(), 2u);
  for (const auto& [name, kept] : bytes) EXPECT_GT(kept, 0u) << name;
  for (const ReportedPlan& cover : compiled().covers) {
    if (!cover.measured || !bytes.contains(cover.name)) continue;
    EXPECT_EQ(cover.bytes, bytes[cover.name]) << cover.name << ", from its row";
  }
}

TEST_F(Memory, DecidesByItsWeight) {
  options_.config = folder_ / "weight.json";
  std::ofstream(options_.config) << R"({"targets": [{"name": "onednn"}, {"name": "native"}],
                                       "memory_weight": 1000})";
  options_.targets.clear();
  const CompileReport report = compiled();
  size_t least = std::numeric_limits<size_t>::max(), chosen = 0;
  for (const ReportedPlan& cover : report.covers) {
    if (cover.measured) least = std::min(least, cover.bytes);
    if (cover.chosen) chosen = cover.bytes;
  }
  EXPECT_EQ(chosen, least);
}

TEST_F(Memory, TheFrontIsWhatNothingElseDominates) {
  CompileReport report;
  const auto add = [&](double seconds, size_t bytes) {
    ReportedPlan& cover = report.covers.emplace_back();
    cover.measured = Measured{seconds, seconds, seconds, 1};
    cover.bytes = bytes;
  };
  add(1, 30);
  add(2, 20);
  add(3, 20);  // the one before is faster, and as small
  add(2, 25);  // as fast as that one, and larger
  add(4, 10);
  add(0.5, 0);  // of which nothing is known
  report.covers.emplace_back().bytes = 1;
  std::string front;
  const nlohmann::json written = report_json(model_of(given_), report, {});
  for (const auto& cover : written["covers"]) front += cover.value("on_front", false) ? "x" : "-";
  EXPECT_EQ(front, "xx--x--");
}

}  // namespace
}  // namespace collage
