// Graph functions, tensor programs, functions of libraries and kernels that somebody decided on, in
// one module: text in, text out, and run. Each file of listings/ is one interaction:
//
//   1_graph_and_programs     a graph calls a program and a function that updates its argument
//   2_weight_layout          a program stores its weight in another layout before it computes
//   3_lifted_layout          the same with the layout taken out, which is computed ahead
//   4_function_of_a_module   main calls a function of operators
//   5_external_compiler      the same after a toolchain took that function
//   6_library_function       a graph calls a library's function by its label
//   7_ahead_of_time          what runs in the end: buffers, and calls that fill them
//   8_custom_fusion          convolutions that somebody wants in one kernel
//   9_tensor_expression      the program of an operator, emitted into the module
//   10_two_toolchains        two toolchains take their parts, with a pass of the user's in between
//
// Its first line names the targets to compile for; those that are claimed for leave out what the
// second excludes. Cases say what is printed:
//
//   === one sentence of intent
//   with simplified          the module after the passes
//   with partitioned         the module cut into kernels
//   with claimed             after a pass for each target, and `tanh_by_sigmoid` in between
//   with emitted             main as a program
//   with plan                what the executor runs
//
// Constants stand by type only and are filled with seeded values. Every case is run, by the
// compiled program, and gives what the interpreter gives for its input; so does what comes out,
// where it is a module. Cases of files that begin "same as NAME" give what NAME's first case does.
// With COLLAGE_REWRITE_EXPECTED=1 the files are written anew with what comes out, for review.
#include <collage/passes.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "backend/targets/backends.h"
#include "backend/targets/targets.h"
#include "case_file.h"
#include "compiler/compile.h"
#include "compiler/listed_partition.h"
#include "compiler/plan_text.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/interpreter.h"
#include "passes/inline_functions.h"
#include "passes/passes.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/module_programs.h"
#include "test_paths.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::string& name) {
  return fs::path(COLLAGE_TESTS_DIR) / "modules" / "listings" / (name + ".txt");
}

std::string print(const Module& module) {
  PrintOptions options;
  options.constants = PrintOptions::Constants::kShapeOnly;
  options.inline_limit = 4;
  const std::string text = to_text(tensor_program::named_programs(module).value(), options);
  return text.substr(text.find('\n') + 1);
}

Result<Module> parse(const std::string& text) {
  ParseOptions options;
  options.abstract_function = tensor_program::abstract_function;
  options.constant = [](const TensorType& type, size_t index) {
    return synthetic_constant(type, index);
  };
  return parse_module(text, options);
}

/// What main computes, by the interpreter.
Result<std::vector<Tensor>> interpreted(Module module, std::span<const Tensor> inputs) {
  TRY(inline_functions(module));
  TRY(tensor_program::link_programs(module));
  return interpret(module.main(), inputs);
}

void expect_equal(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const Difference difference = compare_tensors(actual[i], expected[i], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
  }
}

/// The module whose main is one call of the program that main's operators make.
Result<Module> emitted(const Module& module) {
  const Function& main = module.main();
  const tensor_program::Program program = TRY(tensor_program::emit(main));
  return Module(make_function(
      main->params, TRY(tensor_program::call_of_program(program, main->params, "emitted", ""))));
}

/// A pass of the user's.
Result<Model> tanh_by_sigmoid(const Model& model) {
  return rewrite_calls(model, [](const Expression& call) -> Result<std::optional<Expression>> {
    if (call.op() != "tanh") return std::nullopt;
    const Expression one = TRY(Expression::constant(Tensor::scalar(1.0f)));
    const Expression two = TRY(Expression::constant(Tensor::scalar(2.0f)));
    const Expression doubled = TRY(Expression::call("multiply", {call.arguments()[0], two}));
    const Expression sigmoid = TRY(Expression::call("sigmoid", {doubled}));
    const Expression scaled = TRY(Expression::call("multiply", {sigmoid, two}));
    return std::optional(TRY(Expression::call("subtract", {scaled, one})));
  });
}

class Listings : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_modules_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("COLLAGE_CACHE", folder_.c_str(), 1);
    options_.threads = 1;
    options_.worker = fs::read_symlink("/proc/self/exe");
    options_.effort = Effort::kFast;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs a case and gives what it prints.
  Result<std::string> run(const Case& c) {
    const Module input = TRY(parse(c.input));
    inputs_ = TRY(synthetic_inputs(input.main(), 5));
    expected_ = TRY(interpreted(input, inputs_));
    Module module = input;
    TRY(simplification_pipeline().run(module));
    Program program = TRY(Program::compile(model_of(module), options_));
    expect_equal(TRY(program.run(inputs_)), expected_);
    if (c.with == "plan") return to_text(*program.impl().plan);
    Module output = module;
    if (c.with == "partitioned") {
      const auto specs = TRY(select_targets(options_.targets, {}));
      output = TRY(partition_without_costs(module, specs)).module;
    } else if (c.with == "claimed") {
      output = TRY(claimed(module));
    } else if (c.with == "emitted") {
      output = TRY(emitted(module));
    } else if (c.with != "simplified") {
      return usage_error("nothing is printed with '{}'", c.with);
    }
    expect_equal(TRY(interpreted(output, inputs_)), expected_);
    const std::string text = print(output);
    EXPECT_EQ(print(TRY(parse(text))), text);
    return text;
  }

  /// By each target in turn, with a pass of the user's in between; compiled, it computes the same.
  Result<Module> claimed(const Module& module) {
    std::vector<ModelPass> all;
    for (const std::string& target : options_.targets) {
      if (!all.empty()) all.push_back({"tanh_by_sigmoid", tanh_by_sigmoid});
      ProgramOptions options;
      options.targets = {target};
      options.exclude = exclude_;
      all.push_back(passes::partition_for(options));
    }
    const Model model = TRY(run_passes(model_of(module), all));
    // What a tile of Winograd adds to a number near 0 would show in its square.
    ProgramOptions strictly = options_;
    strictly.strict_accuracy = true;
    Program program = TRY(Program::compile(model, strictly));
    expect_equal(TRY(program.run(inputs_)), expected_);
    return model.impl().module;
  }

  fs::path folder_;
  ProgramOptions options_;
  std::vector<std::string> exclude_;
  std::vector<Tensor> inputs_, expected_;  // of the case that ran last
};

TEST_P(Listings, RunAndPrint) {
  CaseFile file = read_cases(file_of(GetParam()));
  ASSERT_FALSE(file.cases.empty());
  std::istringstream head(file.head);
  std::string same, word;
  for (std::string line; std::getline(head, line);) {
    std::istringstream words(line);
    words >> word;
    if (word == "targets:")
      while (words >> word) options_.targets.push_back(word);
    else if (word == "exclude:")
      while (words >> word) exclude_.push_back(word);
    else if (line.starts_with("same as "))
      same = line.substr(8);
  }
  for (const std::string& target : options_.targets)
    if (find_backend(target) == nullptr) GTEST_SKIP() << "this build is without " << target;
  for (Case& c : file.cases) {
    SCOPED_TRACE(c.intent);
    const Result<std::string> text = run(c);
    const std::string printed = text.ok() ? *text : "error: " + text.status().to_string() + "\n";
    if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) {
      c.expected = printed;
    } else {
      EXPECT_EQ(trimmed(printed), trimmed(c.expected));
    }
    if (same.empty()) continue;
    const Result<Module> other = parse(read_cases(file_of(same)).cases.at(0).input);
    ASSERT_TRUE(other.ok()) << other.status().to_string();
    const Result<std::vector<Tensor>> results = interpreted(*other, inputs_);
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    expect_equal(expected_, *results);
  }
  if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) write_cases(file_of(GetParam()), file);
}

std::vector<std::string> listings() {
  std::vector<std::string> names;
  for (const auto& entry :
       fs::directory_iterator(fs::path(COLLAGE_TESTS_DIR) / "modules" / "listings"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Modules, Listings, ::testing::ValuesIn(listings()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace collage
