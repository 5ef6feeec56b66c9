// Tuning in the background beside runs of the program that it replaces.
#include "collage/tuning.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "measure/pace.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class Background : public testing::CompileTest {
 protected:
  void SetUp() override {
    options_.targets = {"onednn", "openvino"};
    options_.effort = Effort::kFast;
    std::ofstream(folder_ / "model.relay")
        << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(17, 17), float32]) {\n"
        << "  tanh(nn.dense(%x, %x))\n}\n";
  }

  Model model() const { return Model::load(folder_ / "model.relay").value(); }
};

TEST_F(Background, EveryRunIsRightWhileProgramsAreReplaced) {
  const Model tuned = model();
  ProgramOptions quick = options_;
  quick.budget_seconds = 0;
  const Program first = Program::compile(tuned, quick).value();
  ContextPool pool(first, 2);
  const Function& main = tuned.impl().module.main();
  const std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
  const std::vector<Tensor> expected = interpret(main, inputs).value();
  std::atomic<bool> done = false;
  std::atomic<int> runs = 0, wrong = 0;
  const auto serve = [&] {
    while (!done || runs < 1000) {
      const Result<std::vector<Tensor>> outputs = pool.run(inputs);
      wrong += !outputs || !compare_tensors((*outputs)[0], expected[0], model_tolerance()).within;
      ++runs;
    }
  };
  std::thread one(serve), other(serve);
  std::atomic<int> replaced = 0;
  Tuning tuning = Tuning::start(tuned, options_, [&](const Program& better) {
    pool.replace(better);
    ++replaced;
  });
  EXPECT_TRUE(tuning.wait().ok());
  EXPECT_TRUE(tuning.is_done());
  // Whether anything was faster or not.
  options_.exclude = {"openvino"};
  pool.replace(Program::compile(tuned, options_).value());
  done = true;
  one.join();
  other.join();
  EXPECT_EQ(wrong, 0) << runs << " runs";
  EXPECT_LE(replaced, 1);
  options_.exclude = {};
  EXPECT_EQ(Program::compile(tuned, quick).value().impl().report.covers.at(0).origin, "known plan");
}

TEST_F(Background, EndsWhenItIsAskedTo) {
  Tuning tuning = Tuning::start(model(), options_, [](const Program&) {});
  tuning.stop();
  EXPECT_TRUE(tuning.wait().ok());
}

TEST_F(Background, AnErrorEndsIt) {
  options_.targets = {"nonsense"};
  Tuning tuning = Tuning::start(model(), options_, [](const Program&) {});
  EXPECT_EQ(tuning.wait().code(), ErrorCode::kUsage);
}

TEST(Pace, RestsWhileTheProcessIsBusyAndNotOnceItIsStopped) {
  Pace pace(0.5);
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) {
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  pace.rest();
  EXPECT_GE(pace.rested(), 0.1) << "as long as it worked";
  const double before = pace.rested();
  pace.stop();
  pace.rest();
  EXPECT_LT(pace.rested() - before, 0.05);
  done = true;
  busy.join();
}

}  // namespace
}  // namespace collage
