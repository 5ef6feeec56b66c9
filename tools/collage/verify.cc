// collage verify: run against the reference interpreter, or against given outputs, and report the
// largest errors.

#include <fmt/format.h>

#include <filesystem>

#include "cost/comparison.h"
#include "ops/interpreter.h"
#include "options.h"
#include "report/report.h"
#include "runtime/npy.h"

namespace collage::tool {

namespace {

// DIR/0_….npy, one an output by position.
Result<std::vector<Tensor>> expected_from(const std::string& folder, size_t count) {
  std::vector<Tensor> tensors(count);
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    std::string name = entry.path().filename().string();
    size_t digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos || digits > 6 ||
        entry.path().extension() != ".npy")
      continue;
    size_t position = std::stoul(name.substr(0, digits));
    if (position < count) tensors[position] = TRY(read_npy(entry.path()));
  }
  if (ec) return usage_error("--expect {}: {}", folder, ec.message());
  for (size_t i = 0; i < count; ++i)
    if (!tensors[i].defined())
      return usage_error("--expect {}: there is no file {}_….npy for output {}", folder, i, i);
  return tensors;
}

Status verify(const SharedOptions& options, const std::string& expect) {
  Model model = TRY(load(options));
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  std::vector<Tensor> expected = expect.empty()
                                     ? TRY(interpret(model.impl().module.main(), inputs))
                                     : TRY(expected_from(expect, model.outputs().size()));
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds));
  std::vector<Tensor> outputs = TRY(program.run(inputs));
  facts.verification.emplace();
  std::string failure;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Difference difference = compare_tensors(outputs[i], expected[i], model_tolerance());
    fmt::print("output {} '{}': largest error {:.3g}, {:.3g} of the largest value{}\n", i,
               model.outputs()[i].name, difference.max_abs, difference.max_rel,
               difference.within ? "" : "  WRONG");
    facts.verification->max_abs = std::max(facts.verification->max_abs, difference.max_abs);
    facts.verification->max_rel = std::max(facts.verification->max_rel, difference.max_rel);
    facts.verification->within = facts.verification->within && difference.within;
    if (!difference.within && failure.empty())
      failure = fmt::format("output '{}': {}", model.outputs()[i].name, difference.reason);
  }
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, program.outputs(), outputs));
  if (!options.json.empty())
    TRY(write_json(options.json, report_json(model, program.impl().report, facts)));
  if (!failure.empty()) return error(ErrorCode::kVerification, "{}: {}", options.model, failure);
  fmt::print("{}: verified against {} (|a-b| <= 1e-4 max|b| + 1e-3 |b|)\n", options.model,
             expect.empty() ? "the reference interpreter" : expect);
  return {};
}

}  // namespace

Command add_verify(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  auto expect = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("verify", "run against the reference and report the largest errors");
  add_compile_options(*command, *options);
  add_input_options(*command, *options);
  command->add_option("--expect", *expect,
                      "a folder of expected outputs, 0_NAME.npy …, instead of the reference");
  return {command, [options, expect] { return verify(*options, *expect); }};
}

}  // namespace collage::tool
