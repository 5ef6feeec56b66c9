// Costs that are installed with the library: which rows are found, and what damaged files do.
#include "cost/shipped_costs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "cost/cost_keys.h"
#include "cost/cost_store.h"
#include "cost/rows_of_kind.h"
#include "measure/planted_kernel.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Measured of_seconds(double seconds) { return {seconds, seconds, seconds, 9}; }

const Target kReference{"reference", {}, {}};

class Shipped : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::register_host();
    folder_ = fs::temp_directory_path() / ("collage_shipped_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    function_ = testing::unary("tanh", {8, 8});
    text_ = canonical_text(function_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct File {
    std::string processor = processor_name(), version = library_version("reference");
    int threads = 2;
    double microseconds = 20;
    std::string more = {};  // lines
    std::string row = "0:{}";
    std::string kind = {};
  };
  std::string text_of(const File& file) const {
    const nlohmann::json head = {{"collage_costs", 1},
                                 {"processor", file.processor},
                                 {"kind", file.kind},
                                 {"threads", file.threads},
                                 {"versions", {{"reference", file.version}}},
                                 {"speed", {{"float32", 1e11}, {"memory", 1e10}}}};
    const std::string variant = json_text(to_json(Variant::plain("only", function_)));
    const std::string id = shipped::kernel_id(text_, kReference.to_string());
    std::string text = head.dump() + "\nvariant " + variant + "\nkernel " +
                       shipped::key_of(id, CacheState::kWarm) + " " +
                       fmt::format(fmt::runtime(file.row), file.microseconds) + "\n" + file.more;
    return text + fmt::format("end {}\n", std::count(text.begin(), text.end(), '\n'));
  }
  // In a folder of its own: folders are read once a process.
  fs::path written(const std::string& text) {
    const fs::path folder = folder_ / std::to_string(folders_++);
    fs::create_directories(folder);
    std::ofstream(folder / "some.costs") << text;
    return folder;
  }
  static MachineSpeed speed() { return {1e11, 1e10}; }
  std::shared_ptr<const ShippedCosts> found(const std::string& text) {
    return ShippedCosts::find(written(text), processor_name(), 2, speed);
  }
  std::optional<TargetCosts> kernel(const File& file) {
    const auto costs = found(text_of(file));
    return costs != nullptr ? costs->kernel(text_, kReference, CacheState::kWarm) : std::nullopt;
  }

  fs::path folder_;
  static inline int folders_ = 0;
  Function function_;
  std::string text_;
};

TEST_F(Shipped, KnowKernelsOfThisProcessorAndTheseVersions) {
  const std::optional<TargetCosts> known = kernel({});
  ASSERT_TRUE(known.has_value());
  ASSERT_EQ(known->variants.size(), 1u);
  EXPECT_EQ(known->variants[0].variant, Variant::plain("only", function_));
  EXPECT_NEAR(known->variants[0].elsewhere, 20e-6, 1e-12);
  EXPECT_TRUE(std::holds_alternative<Unknown>(known->variants[0].cost)) << "it was not timed here";

  EXPECT_FALSE(kernel({.processor = "another"}).has_value());
  EXPECT_FALSE(kernel({.threads = 3}).has_value());
  EXPECT_FALSE(kernel({.version = "another"}).has_value());
  EXPECT_TRUE(found(text_of({}))->kernel(text_, kReference, CacheState::kCold).has_value())
      << "the nearest that is known";
  EXPECT_FALSE(found(text_of({}))->kernel("fn () { }", kReference, CacheState::kWarm).has_value());
}

// This machine is of the file's speed in `speed`.
TEST_F(Shipped, KnowKernelsOfThisKindOfProcessorBySpeed) {
  EXPECT_FALSE(kernel({.processor = "another", .kind = kind_here(1)}).has_value());
  const File file{.processor = "another", .kind = kind_here(2)};
  const auto twice_as_fast = [] { return MachineSpeed{2e11, 1e10}; };
  const auto costs = ShippedCosts::find(written(text_of(file)), processor_name(), 2, twice_as_fast);
  const std::optional<TargetCosts> known = costs->kernel(text_, kReference, CacheState::kWarm);
  ASSERT_TRUE(known.has_value());
  EXPECT_NEAR(known->variants.at(0).elsewhere, 10e-6, 1e-12);
  // One's own comes first, whatever the order in the folder; a nearer speed comes last.
  const fs::path folder = written(text_of(file));
  std::ofstream(folder / "a.costs") << text_of({.microseconds = 30});
  std::ofstream(folder / "z.costs") << text_of({.processor = "third"});
  const auto own = ShippedCosts::find(folder, processor_name(), 2, twice_as_fast);
  EXPECT_NEAR(own->kernel(text_, kReference, CacheState::kWarm)->variants.at(0).elsewhere, 30e-6,
              1e-12);
  fs::remove(folder / "a.costs");
  const fs::path others = written(text_of(file));
  std::ofstream(others / "a.costs") << text_of({.processor = "third"});
  EXPECT_TRUE(ShippedCosts::find(others, processor_name(), 2, twice_as_fast)
                  ->kernel(text_, kReference, CacheState::kWarm)
                  .has_value());
}

TEST_F(Shipped, KnowWhatATargetRefused) {
  const std::optional<TargetCosts> known = kernel({.row = ""});
  ASSERT_TRUE(known.has_value());
  EXPECT_TRUE(known->variants.empty());
  EXPECT_FALSE(known->refusal.empty());
}

// One warning for each, and nothing is known.
TEST_F(Shipped, DamagedFilesAreLeftAside) {
  const std::string good = text_of({});
  const std::string some_lines = good.substr(0, good.rfind("end"));
  for (const std::string& text :
       {std::string(), good.substr(0, good.size() / 2), good.substr(0, good.size() - 1), some_lines,
        some_lines + "end 1\n", "{}\n" + good, std::string("no json\nend 1\n"),
        some_lines + "oddity\nend 4\n", some_lines + "estimate [1]\nend 4\n",
        some_lines + "kernel 12\nend 4\n"}) {
    ::testing::internal::CaptureStderr();
    const fs::path folder = written(text);
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(ShippedCosts::find(folder, processor_name(), 2, speed), nullptr) << text;
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("some.costs: ")) << text;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  for (const char* row : {"1:20", "0:x", "0:-1", "0:nan", "0", "x"})
    EXPECT_FALSE(kernel({.row = row}).has_value()) << row;
  EXPECT_EQ(ShippedCosts::find(folder_ / "none", processor_name(), 2, speed), nullptr);
}

TEST_F(Shipped, EstimatesAreOfTheNearestProcessor) {
  const fs::path folder = written("");
  fs::remove(folder / "some.costs");
  const auto write = [&](const char* name, const char* processor, int threads, double estimate) {
    File file{.processor = processor, .threads = threads};
    file.more = fmt::format("estimate [\"reference\",\"\",\"\",0,0,{},0]\n", estimate);
    std::ofstream(folder / name) << text_of(file);
  };
  write("a.costs", "slow", 8, 5);  // of 1e11 operations on 8 threads
  write("b.costs", "fast", 2, 3);
  const auto costs = ShippedCosts::find(folder, "another", 2, speed);
  ASSERT_NE(costs, nullptr);
  const KernelWork work{"tanh", 1e6, 1e6, 0};
  const auto expected = [&](const char* target, const ShippedCosts& of, MachineSpeed now) {
    return of.expected(target, "only", work, [=] { return now; });
  };
  EXPECT_NEAR(expected("reference", *costs, speed()).value(), 3e-5, 1e-9);
  EXPECT_NEAR(expected("reference", *costs, {5e10, 1e10}).value(), 6e-5, 1e-9)
      << "scaled by the machine's own speed";
  EXPECT_FALSE(expected("nobody", *costs, speed()).has_value());
  const auto own = ShippedCosts::find(folder, "fast", 2, speed);
  EXPECT_NEAR(expected("reference", *own, {5e10, 1e10}).value(), 3e-5, 1e-9)
      << "of the same processor, as its rows are";
}

// The database's own rows come first, then its foreign ones, then what was shipped.
TEST_F(Shipped, AreAskedLast) {
  CostOptions options;
  options.compile.threads = 2;
  options.cache = CacheState::kWarm;
  options.shipped = written(text_of({}));
  const CostKey key{text_, kReference};
  TargetCosts own;
  own.target = kReference.to_string();
  own.variants.push_back({Variant::plain("only", function_), of_seconds(1e-6)});

  const fs::path file = folder_ / "costs.db";
  const auto offered = [&]() -> MeasuredVariant {
    const auto database = CostDatabase::open(file);
    CostStore store(*database, options);
    const std::optional<TargetCosts> offer = store.find_offer(key, &function_, true);
    EXPECT_TRUE(offer.has_value());
    return offer ? offer->variants.at(0) : MeasuredVariant();
  };
  EXPECT_NEAR(offered().elsewhere, 20e-6, 1e-12);
  {
    const auto database = CostDatabase::open(file);
    CostStore(*database, options).put("function", key, own);
    CostRow row = testing::rows_of_kind(file, "function").at(0);
    row.foreign = true;
    ASSERT_TRUE(database->insert(row).ok());
  }
  EXPECT_NEAR(offered().elsewhere, 1e-6, 1e-12);
  {
    const auto database = CostDatabase::open(file);
    CostStore(*database, options).put("function", key, own);
  }
  EXPECT_NE(measured(offered().cost), nullptr);
  EXPECT_EQ(offered().elsewhere, 0);

  // What this build lists is what it offers, with what that took there.
  const auto listing = CostDatabase::in_memory();
  CostStore store(*listing, options);
  EXPECT_FALSE(store.find_offer(key, &function_).has_value());
  TargetCosts listed = store.find_offer(key, &function_, true).value();
  listed.variants.resize(1);
  listed.variants[0].elsewhere = 0;
  store.put("trial", key, listed);
  EXPECT_EQ(store.find_offer(key, &function_)->variants.size(), 1u);
  EXPECT_NEAR(store.find_offer(key, &function_)->variants[0].elsewhere, 20e-6, 1e-12);

  options.frozen = true;
  const auto empty = CostDatabase::in_memory();
  EXPECT_FALSE(CostStore(*empty, options).find_offer(key, &function_, true).has_value())
      << "where nothing may be measured, nothing is guessed";
}

// What a database knows of kernels is found again in the file that is written of it.
TEST_F(Shipped, AreWrittenOfADatabase) {
  class Planted : public Backend {
   public:
    Planted() : Backend("planted", [] { return BackendTraits{.version = "1"}; }) {}
    PartitionRulePtr partition_rule(const Target&) const override { return nullptr; }
    Result<std::vector<Variant>> variants(const Function&, const Target&,
                                          const CompileOptions&) const override {
      return std::vector<Variant>();
    }
    Result<std::unique_ptr<Kernel>> compile(const Function&, const Variant&, const Target&,
                                            const CompileOptions&) const override {
      return unsupported("nothing");
    }
  };
  if (find_backend("planted") == nullptr) register_backend(std::make_unique<Planted>());
  const Target target{"planted", {}, {}};
  CostOptions options;
  options.compile.threads = 2;
  options.cache = CacheState::kWarm;
  options.shipped.clear();
  const fs::path file = folder_ / "costs.db";
  const auto database = CostDatabase::open(file);
  std::ostringstream none;
  EXPECT_EQ(write_shipped_costs(*database, none).code(), ErrorCode::kUnavailable);

  CostStore store(*database, options);
  std::vector<Function> functions;
  for (int64_t rows = 1; rows <= 10; ++rows) {
    functions.push_back(testing::unary("tanh", {rows * 100, 8}));
    TargetCosts costs;
    costs.target = target.to_string();
    costs.variants.push_back({Variant::plain("a", functions.back()), Unknown{}});
    costs.variants.push_back({Variant::plain("b", functions.back()), Invalid{"wrong"}});
    const CostKey key{canonical_text(functions.back()), target};
    if (rows == 10) {
      store.put("trial", key, costs);
      continue;
    }
    costs.variants[0].cost = of_seconds(1e-6 * static_cast<double>(rows));
    store.put_measured(key, functions.back(), costs);
  }
  const TensorType type{{4, 8, 2, 2}, DType::kFloat32};
  const std::string text =
      CostKeys::conversion_text(type, plain_encoding(type), plain_encoding(type));
  store.put_conversion("conversion", text, {"reference", of_seconds(7e-6)}, {});
  std::ostringstream out;
  ASSERT_TRUE(write_shipped_costs(*database, out).ok());

  const auto costs = found(out.str());
  ASSERT_NE(costs, nullptr);
  const auto seconds = [&](size_t function) {
    const auto known =
        costs->kernel(canonical_text(functions.at(function)), target, CacheState::kWarm);
    EXPECT_EQ(known->variants.size(), 1u) << "what is wrong is left out";
    return known->variants.at(0).elsewhere;
  };
  EXPECT_NEAR(seconds(2), 3e-6, 1e-9);
  EXPECT_NEAR(seconds(9), 1.5 * 10e-6, 1e-6) << "listed, and never worth a measurement";
  EXPECT_NEAR(costs->conversion(text, CacheState::kWarm).value(), 7e-6, 1e-9);
}

}  // namespace
}  // namespace collage
