// Passes: from a model to a model, to be run in any order, with those of the user's in between.
//
//   collage::Model model = *collage::Model::load("net.onnx");
//   collage::Result<collage::Model> partitioned = collage::run_passes(model, {
//       collage::passes::partition_for({.targets = {"onednn"}}),
//       {"my_pass", [](const collage::Model& m) { return collage::rewrite_calls(m, …); }},
//       collage::passes::partition_for({.targets = {"native"}}),
//   });
//
// A function with Primitive=1 is one kernel, decided on by a pass or by whoever wrote it: no pass
// here changes it, takes it apart or makes it a part of another.
#pragma once

#include <collage/module.h>

namespace collage {

struct ModelPass {
  std::string name;  // for messages
  std::function<Result<Model>(const Model&)> run;
};

// Runs passes in order. The model is verified before the first one and after each; an error names
// the pass. Exceptions that a pass throws are errors too (kInternal).
Result<Model> run_passes(const Model& model, const std::vector<ModelPass>& passes);

// What compiling @main with these options needs the costs of: one function a task, whoever may run
// it. `unknown` of its targets have no cost in the database.
struct MeasuringTask {
  std::string function;              // Relay text, weights by type alone
  std::vector<std::string> targets;  // none: the host's
  size_t unknown = 0;
};
Result<std::vector<MeasuringTask>> extract_tasks(const Model& model,
                                                 const ProgramOptions& options = {});

namespace passes {

// All standard passes in their order: what Model::load does to a model.
ModelPass simplify();
// One of them by name, such as "fold_constants". kUsage when run: there is none; the message lists
// them.
ModelPass standard(const std::string& name);
std::vector<std::string> standard_names();  // in their order, each once

// What one toolchain takes of the model, by its rule, becomes its kernels: global functions with
// Primitive, Compiler and global_symbol. The largest candidates that fit together; nothing is
// measured. The rest stays as it is, for the next pass or the search. The toolchain, and what it
// may not take, are options.targets or options.config, exclude and pin; kUsage where they are
// several.
ModelPass partition_for(const ProgramOptions& options);

// Every match of a pattern (docs/patterns.md) becomes one kernel: a global function with Primitive
// and Composite=label. `compiler`: the toolchain that is to run it; "": whichever does it best.
// Matches overlap no other, larger ones first. kUsage when run: a malformed pattern.
ModelPass fuse_pattern(const std::string& pattern, const std::string& label,
                       const std::string& compiler = "");

// Partitions as was measured: the cover that was timed fastest or, where none was timed, the one
// that costs predict to be. Measures nothing: kFrozenCosts where a cost is missing.
ModelPass apply_history_best(const ProgramOptions& options = {});

}  // namespace passes
}  // namespace collage
