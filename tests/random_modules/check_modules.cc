#include "random_modules/check_modules.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "collage/collage.h"
#include "collage/device.h"
#include "collage/module.h"
#include "collage/passes.h"
#include "compiler/compile.h"
#include "compiler/model_stages.h"
#include "compiler/plan_text.h"
#include "frontend/script/round_trip.h"
#include "frontend/script/symbolic_module.h"
#include "ir/structural.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "passes/devices/device_copies.h"
#include "passes/devices/every_assignment.h"
#include "passes/devices/plan_devices.h"
#include "passes/verify.h"
#include "random_module.h"
#include "verify/comparison.h"

namespace collage::testing {
namespace {

namespace fs = std::filesystem;
using tensor_program::SymbolicModule;
using tensor_program::Symbols;

constexpr Sizes kSizes[] = {{3, 5}, {4, 2}, {1, 7}, {2, 1}, {6, 3}};
constexpr const char* kDevices = "cpu:0, simulated:0, simulated:1";
const std::vector<VirtualDevice> kPlaces = {{"cpu", 0, ""},
                                            {"simulated", 0, ""},
                                            {"simulated", 0, "scratch"},
                                            {"simulated", 1, ""},
                                            {"simulated", 1, "scratch"}};
const std::vector<std::string> kTargets[] = {
    {"native"}, {"reference"}, {"onednn"}, {"native"}, {"native", "onednn"}};
constexpr size_t kMostTried = 17;  // nodes whose assignments are tried

// Costs that differ from kernel to kernel: nothing is measured.
class AnyCosts : public CostModel {
 public:
  std::optional<double> kernel_seconds(const Kernel& kernel) override {
    const size_t drawn = std::hash<std::string>()(kernel.function + kernel.target + kernel.variant);
    return 1e-6 * static_cast<double>(1 + drawn % 9);
  }
  std::optional<double> conversion_seconds(const Conversion&) override { return 1e-6; }
};

class ModuleCheck {
 public:
  ModuleCheck(uint64_t seed, const fs::path& folder, CheckedModules& checked)
      : seed_(seed), sizes_(kSizes[seed % std::size(kSizes)]), checked_(checked) {
    options_.threads = 1;
    options_.worker = fs::read_symlink("/proc/self/exe");
    options_.database = folder / "costs.db";
    options_.effort = Effort::kFast;
  }

  void run() {
    // Half of the modules are on devices, of these half on two, and half small enough to be planned
    // by trying every assignment. With several targets covers are timed, which takes a second.
    const bool on_devices = seed_ % 2 == 0, on_two = seed_ % 8 == 2 || seed_ % 8 == 4;
    RandomModuleOptions options;
    if (on_devices) options.places = {"cpu", "simulated", "simulated:0/scratch", "/global"};
    if (on_two) options.places.push_back("simulated:1");
    if (seed_ % 4 == 0) options.most_steps = 4, options.most_functions = 1;
    Module module;
    read(options, module);
    if (::testing::Test::HasFatalFailure()) return;
    const Result<Module> planned = plan(module);
    if (::testing::Test::HasFatalFailure()) return;
    if (!planned.ok()) {
      options.places.clear();
      read(options, module);
      if (::testing::Test::HasFatalFailure()) return;
    }
    std::vector<std::string> targets = kTargets[seed_ / 2 % std::size(kTargets)];
    if (planned.ok() && on_devices) targets = {"simulated -device=simulated:0"};
    if (planned.ok() && on_two) targets.push_back("simulated -device=simulated:1");
    const bool as_planned = planned.ok() && seed_ % 3 != 0;
    compile(as_planned ? *planned : module, module, std::move(targets));
  }

 private:
  static void expect_text_is_read_back(const Module& module) {
    for (const bool types : {false, true}) {
      PrintOptions options;
      options.show_types = types;
      const std::string text = to_text(module, options);
      const Result<Module> again = tensor_program::parse_module_text(text);
      ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << text;
      ASSERT_TRUE(structural_equal(module, *again)) << text << to_text(*again);
      ASSERT_EQ(to_text(*again, options), text);
    }
    tensor_program::expect_script_round_trip(module);
  }

  // The text over symbols, and its instance, which is the text of numbers.
  void read(RandomModuleOptions options, Module& module) {
    const std::string text = RandomModule(seed_, options).text();
    options.values = sizes_;
    const std::string numbers = RandomModule(seed_, options).text();
    SCOPED_TRACE(text);
    const Result<SymbolicModule> family = SymbolicModule::parse(text);
    ASSERT_TRUE(family.ok()) << family.status().to_string();
    const Symbols values = {{"m", sizes_.m}, {"n", sizes_.n}};
    const Result<Module> made = family->instantiate(values),
                         expected = tensor_program::parse_module_text(numbers);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    ASSERT_TRUE(expected.ok()) << expected.status().to_string() << "\n" << numbers;
    ASSERT_TRUE(structural_equal(*made, *expected)) << numbers << to_text(*made);
    module = *made;
    const Status legal = verify(module);
    ASSERT_TRUE(legal.ok()) << legal.to_string();
    expect_text_is_read_back(module);
    checked_.control += text.find("control.") != std::string::npos;
    checked_.functions += text.find("= @function") != std::string::npos;
    checked_.programs += text.find("= @program") != std::string::npos;
    checked_.tuples += text.find(" = (") != std::string::npos;
  }

  Result<Module> plan(const Module& module) {
    SCOPED_TRACE(to_text(module));
    const DeclaredDevices devices = DeclaredDevices::parse(kDevices).value();
    Result<Module> planned = plan_devices(module, devices);
    EveryAssignment assignment(module, kPlaces);
    if (assignment.nodes() <= kMostTried) {
      const std::optional<size_t> expected = assignment.copies();
      EXPECT_EQ(planned.ok(), expected.has_value()) << planned.status().to_string();
      if (planned.ok() && expected) {
        EXPECT_EQ(count_device_copies(*planned), *expected) << to_text(*planned);
        checked_.copies += *expected;
      }
    }
    ++(planned.ok() ? checked_.planned : checked_.refused);
    if (!planned.ok()) return planned;
    const Status legal = verify(*planned);
    EXPECT_TRUE(legal.ok()) << legal.to_string();
    const Result<Module> again = plan_devices(*planned, devices);
    EXPECT_TRUE(again.ok()) << again.status().to_string() << to_text(*planned);
    if (again.ok()) {
      EXPECT_EQ(to_text(*again), to_text(*planned));
    }
    expect_text_is_read_back(*planned);
    return planned;
  }

  // The plan's text, read back with its code, is that plan.
  static void read_back(Program& program, const std::vector<Tensor>& inputs) {
    const Plan& plan = *program.impl().plan;
    const std::string text = to_text(plan);
    const Result<std::shared_ptr<const Plan>> read = parse_plan(text, plan, 1);
    // Kernels of the simulated device are none that can be saved.
    if (!read && read.status().to_string().find("(simulated ") != std::string::npos) return;
    ASSERT_TRUE(read.ok()) << read.status().to_string() << text;
    EXPECT_EQ(to_text(**read), text);
    Result<Executor> executor = Executor::create(*read, 1);
    ASSERT_TRUE(executor.ok()) << executor.status().to_string();
    std::vector<Tensor> expected, found(plan.outputs.size());
    ASSERT_TRUE(program.run(inputs, expected).ok());
    const Status ran = executor->run(inputs, found);
    ASSERT_TRUE(ran.ok()) << ran.to_string() << text;
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(std::memcmp(found[i].raw(), expected[i].raw(), expected[i].bytes()), 0) << text;
  }

  // `stage` of the module, compiled and interpreted, gives what that does.
  void compile(const Module& stage, const Module& module, std::vector<std::string> targets) {
    SCOPED_TRACE(to_text(stage));
    const Function main = linked(model_of(module)).value().impl().module.main();
    const std::vector<Tensor> inputs = random_inputs(main, seed_),
                              expected = interpret(main, inputs).value();
    Model model = model_of(stage);
    const Result<Model> stage_linked = linked(model);
    ASSERT_TRUE(stage_linked.ok()) << stage_linked.status().to_string();
    const std::vector<Tensor> same = interpret(stage_linked->impl().module.main(), inputs).value();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(std::memcmp(same[i].raw(), expected[i].raw(), expected[i].bytes()), 0) << i;
    if (seed_ % 5 < 2) {
      Result<Model> simple = run_passes(model, {passes::simplify()});
      ASSERT_TRUE(simple.ok()) << simple.status().to_string();
      model = *std::move(simple);
    }
    options_.targets = std::move(targets);
    if (options_.targets.size() > 1) options_.cost_model = std::make_shared<AnyCosts>();
    SCOPED_TRACE(options_.targets[0]);
    Result<Program> program = Program::compile(model, options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const auto expect_right = [&](const std::vector<Tensor>& outputs) {
      ASSERT_EQ(outputs.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        const Difference difference = compare_tensors(
            copy_to("cpu", outputs[i]).value(), expected[i], {.of_scale = 1e-4, .relative = 1e-3});
        ASSERT_TRUE(difference.within) << "output " << i << ": " << difference.reason;
      }
    };
    read_back(*program, inputs);
    // Every other run takes and gives tensors of a device, or of two.
    for (size_t run = 0; run < 4; ++run) {
      const auto place = [&](size_t i) {
        return run % 2 == 0 ? "cpu" : (i + run) % 3 == 0 ? "simulated:1" : "simulated:0";
      };
      std::vector<Tensor> given, outputs;
      for (size_t i = 0; i < inputs.size(); ++i)
        given.push_back(copy_to(place(i), inputs[i]).value());
      for (size_t i = 0; i < expected.size(); ++i)
        outputs.push_back(allocate_on(place(i), expected[i].dtype(), expected[i].shape()).value());
      const Status ran = program->run(given, outputs);
      ASSERT_TRUE(ran.ok()) << ran.to_string();
      expect_right(outputs);
    }
  }

  const uint64_t seed_;
  const Sizes sizes_;
  CheckedModules& checked_;
  ProgramOptions options_;
};

}  // namespace

CheckedModules check_modules(uint64_t first, size_t count) {
  CheckedModules checked;
  const fs::path folder =
      fs::temp_directory_path() / ("collage_random_modules_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ModuleCheck(seed, folder, checked).run();
    if (::testing::Test::HasFailure()) break;
  }
  fs::remove_all(folder);
  return checked;
}

}  // namespace collage::testing
