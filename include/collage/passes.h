// Passes from model to model, which may be mixed with the user's own in any order.
//
//   collage::Model model = *collage::Model::load("net.onnx");
//   collage::Result<collage::Model> partitioned = collage::run_passes(model, {
//       collage::passes::partition_for({.targets = {"onednn"}}),
//       {"my_pass", [](const collage::Model& m) { return collage::rewrite_calls(m, …); }},
//       collage::passes::partition_for({.targets = {"native"}}),
//   });
//
// A function with Primitive=1 is one kernel: no pass here changes it, splits it or makes it a part
// of another.
#pragma once

#include <collage/module.h>

namespace collage {

struct ModelPass {
  std::string name;  // for messages
  std::function<Result<Model>(const Model&)> run;
};

// Runs passes in order. Verifies the model before the first one and after each; an error names the
// pass. An exception of a pass becomes an error (kInternal).
Result<Model> run_passes(const Model& model, const std::vector<ModelPass>& passes);

// A function whose costs a compilation of @main with these options needs. `unknown` of its targets
// have no cost in the database.
struct MeasuringTask {
  std::string function;              // Relay text, weights by type alone
  std::vector<std::string> targets;  // none: the host's
  size_t unknown = 0;
};
Result<std::vector<MeasuringTask>> extract_tasks(const Model& model,
                                                 const ProgramOptions& options = {});

namespace passes {

// Runs all standard passes in order, as Model::load does.
ModelPass simplify();
// Runs one of them by name, such as "fold_constants". kUsage when run: there is none; the message
// lists all.
ModelPass standard(const std::string& name);
std::vector<std::string> standard_names();  // in their order, each once

// Partitions for one toolchain: what its rule takes becomes global functions with Primitive,
// Compiler and global_symbol, the largest candidates that fit together. Measures nothing. The rest
// stays, for the next pass or the search. options.targets or options.config, exclude and pin name
// the toolchain and what it may not take; kUsage: they name several toolchains.
ModelPass partition_for(const ProgramOptions& options);

// Makes every match of a pattern (docs/patterns.md) one kernel: a global function with Primitive
// and Composite=label. `compiler`: the toolchain that runs it; "": the fastest. Matches do not
// overlap, larger ones go first. kUsage when run: the pattern is malformed.
ModelPass fuse_pattern(const std::string& pattern, const std::string& label,
                       const std::string& compiler = "");

// Compiles what one toolchain claimed, each global function with Primitive and its Compiler, alone:
// the function becomes an external function of that symbol, and its code an external module of the
// model (external_modules, docs/modules.md#external-modules), which compiling links and never
// compiles again. Options are those of partition_for and of Program::compile. kUnsupported when
// run: the toolchain refuses a function, or its kernels cannot be saved.
ModelPass codegen(const ProgramOptions& options);

// Returns the text of a rule (docs/partitioning.md) as it prints. kUsage: it is malformed.
Result<std::string> rule_text(const std::string& rule);

// A property that predicates of patterns and rules may then name (docs/patterns.md#predicates), for
// every target, in this process. `of` is called from several threads, with any expression of a
// graph; nothing (std::monostate) is unknown. A name has to mean the same in all processes: what
// was chosen is remembered by the text. kUsage: it is no name, or there is one already.
Status register_property(const std::string& name,
                         std::function<Expression::Value(const Expression&)> of);

// Device planning (docs/devices.md): states where nodes run, by names of nodes or by a toolchain's
// rule, finds a place for every value, and makes what is together on a device a function of its
// own. `devices`: "cpu:0, gpu:0, little=cpu:1"; values without constraints are on the first one.
// kUsage when run: a text is malformed, or a name matches no node; kBadModel: a value would have to
// be on two devices.
ModelPass annotate_devices(const std::vector<std::string>& places);  // "REGEX=DEVICE"
ModelPass annotate_devices(const ProgramOptions& options);  // as partition_for; on its device
ModelPass plan_devices(const std::string& devices);
// Of a planned module. `all`: what is on the first device too.
ModelPass partition_by_device(const std::string& devices, bool all = false);

// Partitions by the best measured cover: the one that was timed fastest or, if none was timed, the
// one of least predicted cost; tensor programs bring the schedules that were found. Measures
// nothing: kFrozenCosts if a cost is missing.
ModelPass apply_history_best(const ProgramOptions& options = {});
// Each call of a tensor program in whose name the regular expression is found becomes the kernel
// that is fastest where it runs alone: the program brings its schedule, and weights are stored as
// that reads them. Measures what is not known. kUsage: no regular expression.
ModelPass tune(const std::string& filter = "", const ProgramOptions& options = {});

}  // namespace passes
}  // namespace collage
