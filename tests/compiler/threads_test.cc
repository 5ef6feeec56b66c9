// Several threads of an application load, compile and run at once, with programs for teams of
// different sizes: each run gives the bits it gives alone. long_threads_test.cc does so with whole
// workloads.
#include <gmock/gmock.h>
#include <omp.h>

#include <filesystem>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "compiler/run_on_threads.h"
#include "compiler/workload.h"
#include "ir/text_parser.h"
#include "partition/gather.h"
#include "runtime/in_child.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using testing::on_threads;
using testing::Rehearsed;

constexpr int kThreads = 8, kRuns = 200;

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_threads_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("COLLAGE_CACHE", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Model load(const std::string& name) {
    fs::path path = testing::small_model(name, folder_);
    Result<Model> model = Model::load(path);
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return std::move(model).value();
  }

  ProgramOptions on(std::vector<std::string> targets, int threads) {
    ProgramOptions options;
    options.targets = std::move(targets);
    options.threads = threads;
    options.worker = fs::read_symlink("/proc/self/exe");
    options.effort = Effort::kFast;
    return options;
  }

  // Those of this build that compute.
  static std::vector<std::string> toolchains() {
    register_all();
    std::vector<std::string> names;
    for (const char* name : {"onednn", "native", "openvino", "blas", "reference"})
      if (const Backend* backend = find_backend(name); backend && backend->available().ok())
        names.push_back(name);
    return names;
  }

  fs::path folder_;
};

void expect_same_bits(std::vector<Rehearsed>& programs, int runs) {
  std::vector<std::string> failures(kThreads);
  on_threads(kThreads, [&](int t) {
    const size_t own = static_cast<size_t>(t);
    failures[own] = programs[own % programs.size()].run(t, runs);
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_F(Threads, RunProgramsForTeamsOfSeveralSizes) {
  const Model model = load("mnist");
  for (const std::string& name : toolchains()) {
    SCOPED_TRACE(name);
    std::vector<Rehearsed> programs;
    for (int p = 0; p < kThreads; ++p) {
      Result<Rehearsed> made = Rehearsed::make(model, on({name}, 1 + p % 4), kThreads);
      ASSERT_TRUE(made.ok()) << made.status().to_string();
      programs.push_back(std::move(made).value());
    }
    expect_same_bits(programs, name == "reference" ? kRuns / 10 : kRuns);
  }
}

TEST_F(Threads, RunOneProgram) {
  const Model model = load("mnist");
  for (const std::string& name : toolchains()) {
    SCOPED_TRACE(name);
    std::vector<Rehearsed> programs;
    Result<Rehearsed> made = Rehearsed::make(model, on({name}, 2), kThreads);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    programs.push_back(std::move(made).value());
    expect_same_bits(programs, name == "reference" ? kRuns / 10 : kRuns);
  }
}

// Contexts are made while others run.
TEST_F(Threads, RunContextsOfOneProgram) {
  std::vector<std::string> names = toolchains();
  if (const Backend* amx = find_backend("amx"); amx && amx->available().ok())
    names.push_back("amx");
  for (const std::string& name : names)
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(name + " on " + std::to_string(threads) + " threads");
      const Model model = load(name == "amx" ? "bert" : "mnist");  // wide enough for its tiles
      std::vector<std::string> targets = {name};
      if (name == "amx") targets.push_back("reference");  // for what it does not take
      Result<Rehearsed> made = Rehearsed::make(model, on(targets, threads), kThreads);
      ASSERT_TRUE(made.ok()) << made.status().to_string();
      std::vector<std::string> failures(kThreads);
      on_threads(kThreads, [&](int t) {
        std::string& failure = failures[static_cast<size_t>(t)];
        for (int context = 0; context < 4 && failure.empty(); ++context)
          failure = made->run_in_context(t, name == "reference" ? kRuns / 40 : kRuns / 4);
      });
      for (const std::string& failure : failures) EXPECT_EQ(failure, "");
    }
}

// What was loaded and run before a fork gives the same bits in the child, by a program and by a
// context of it.
TEST_F(Threads, RunInAChildProcess) {
  const Model model = load("mnist");
  for (const std::string& name : toolchains()) {
    SCOPED_TRACE(name);
    Result<Rehearsed> made = Rehearsed::make(model, on({name}, 2), 1);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    ASSERT_EQ(made->run(0, 3), "");
    EXPECT_EQ(testing::in_child([&] {
                const std::string failure = made->run(0, 10) + made->run_in_context(0, 10);
                if (!failure.empty()) fmt::print(stderr, "{}\n", failure);
                return failure.empty() ? 0 : 1;
              }),
              0);
    EXPECT_EQ(made->run(0, 3), "");
  }
}

TEST_F(Threads, LeaveTheCallersTeamAlone) {
  const Model model = load("mnist");
  on_threads(1, [&](int) {
    omp_set_num_threads(5);
    Result<Rehearsed> made = Rehearsed::make(model, on({"reference"}, 2), 1);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    EXPECT_EQ(omp_get_max_threads(), 5);
  });
}

// Each thread loads the model and compiles it, with the folder of compiled kernels and the database
// of trials in common.
TEST_F(Threads, CompileAtOnceWithOneToolchain) {
  const fs::path path = testing::small_model("mnist", folder_);
  const std::vector<std::string> names = toolchains();
  const std::vector<Tensor> inputs = {
      Tensor::from<float>({1, 1, 28, 28}, std::vector<float>(28 * 28, 0.25f))};
  std::vector<std::string> failures(kThreads);
  std::vector<Tensor> outputs(kThreads);
  on_threads(kThreads, [&](int t) {
    const size_t own = static_cast<size_t>(t);
    const auto attempt = [&]() -> Status {
      Model model = TRY(Model::load(path));
      Program program = TRY(Program::compile(model, on({names[own % names.size()]}, 1 + t % 2)));
      outputs[own] = TRY(program.run(inputs)).at(0);
      return {};
    };
    if (const Status status = attempt(); !status.ok()) failures[own] = status.to_string();
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  for (const Tensor& output : outputs) {
    ASSERT_EQ(output.shape(), (Shape{1, 10}));
    for (int64_t i = 0; i < 10; ++i)
      EXPECT_NEAR(output.data<float>()[i], outputs[0].data<float>()[i], 1e-3);
  }
}

// The same with costs measured and covers timed, of which one database learns.
TEST_F(Threads, CompileAtOnceByMeasuredCost) {
  const char* text = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(16, 24), float32], %y: Tensor[(24, 16), float32]) {
  nn.softmax(tanh(nn.matmul(%x, %y)))
})";
  constexpr int kCompiles = 4;
  std::vector<std::string> failures(kCompiles);
  on_threads(kCompiles, [&](int t) {
    const size_t own = static_cast<size_t>(t);
    const auto attempt = [&]() -> Status {
      register_all();
      Model model = model_of(TRY(parse_module(text)));
      Rehearsed made = TRY(Rehearsed::make(model, on({"native", "onednn"}, 1 + t % 2), 1));
      failures[own] = made.run(0, kRuns);
      return {};
    };
    if (const Status status = attempt(); !status.ok()) failures[own] = status.to_string();
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_F(Threads, PlaceNodesOnDevices) {
  register_all();
  on_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRuns; ++i) {
      const std::string device = "npu" + std::to_string(t) + "_" + std::to_string(i);
      Result<Module> module = parse_module(
          "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) {\n  on_device(abs(%x), "
          "device=\"" +
          device + "\")\n}\n");
      if (!module) {
        ADD_FAILURE() << module.status().to_string();
        return;
      }
      const DataflowGraph graph(module->main());
      EXPECT_THAT(check_places(graph, {}).to_string(),
                  ::testing::HasSubstr("is to be on " + device));
    }
  });
}

}  // namespace
}  // namespace collage
