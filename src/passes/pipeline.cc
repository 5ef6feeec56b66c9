#include "passes/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <unordered_map>

#include "base/dump_folder.h"
#include "base/files.h"
#include "base/stopwatch.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "passes/verify.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

// Above this many bytes of constants a dump gives them by type only.
constexpr size_t kMaxDumpedConstants = size_t{64} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

size_t constant_bytes(const Module& module) {
  size_t bytes = 0;
  for (const auto& [name, function] : module.functions)
    for (const Expr& expr : post_order(function->body))
      if (const auto* constant = as<ConstantNode>(expr)) bytes += constant->value.bytes();
  return bytes;
}

Status dump(const DumpFolder& dumps, const Module& module, size_t index, const std::string& name) {
  if (!dumps.wants(name)) return {};
  const std::filesystem::path path = dumps.path(fmt::format("{:02}_{}.relay", index, name));
  const Module named = TRY(tensor_program::named_programs(module));
  if (constant_bytes(module) <= kMaxDumpedConstants) return save_module(named, path);
  PrintOptions options;
  options.constants = PrintOptions::Constants::kShapeOnly;
  return write_file_atomically(path, to_text(named, options));
}

// A pass of a function, and of those that its control flow runs. What several calls share stays
// one.
Result<Function> rewrite_all(const Function& function,
                             const std::function<Result<Function>(const Function&)>& rewrite) {
  std::unordered_map<const ExprNode*, Expr> rewritten;
  Rewriter inside([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr || call->op == nullptr) return rebuilt;
    std::vector<Expr> args = call->args;
    for (Expr& arg : args) {
      if (arg->kind() != ExprKind::kFunction) continue;
      Expr& known = rewritten[arg.get()];
      if (known == nullptr)
        known = TRY(rewrite_all(std::static_pointer_cast<const FunctionNode>(arg), rewrite));
      arg = known;
    }
    if (args == call->args) return rebuilt;
    return make_call(*call->op, std::move(args), call->attrs, rebuilt->origin());
  });
  return rewrite(TRY(inside.rewrite(function)));
}

}  // namespace

Pass function_pass(std::string name, std::function<Result<Function>(const Function&)> rewrite) {
  return {std::move(name), [rewrite = std::move(rewrite)](Module& module) -> Result<bool> {
            bool changed = false;
            for (auto& [global, function] : module.functions) {
              if (function->attrs.has("Primitive")) continue;
              Result<Function> result = rewrite_all(function, rewrite);
              if (!result) return std::move(result).status().with_context("@" + global);
              changed = changed || *result != function;
              function = *result;
            }
            return changed;
          }};
}

Result<std::vector<PassRecord>> Pipeline::run(Module& module,
                                              const PipelineOptions& options) const {
  std::vector<std::string> disabled = options.disabled;
  std::istringstream names(environment("COLLAGE_DISABLE_PASS"));
  for (std::string name; std::getline(names, name, ',');)
    if (!name.empty()) disabled.push_back(name);
  for (const std::string& name : disabled) {
    if (std::any_of(passes_.begin(), passes_.end(), [&](const Pass& p) { return p.name == name; }))
      continue;
    std::string known;
    for (const Pass& pass : passes_)
      if (known.find(pass.name) == std::string::npos)
        known += (known.empty() ? "" : ", ") + pass.name;
    return usage_error("cannot disable pass '{}'; the passes are {}", name, known);
  }
  const DumpFolder dumps = TRY(DumpFolder::open(options.dump));
  TRY(dump(dumps, module, 0, "input"));

  Module current = module;
  std::vector<PassRecord> records;
  for (const Pass& pass : passes_) {
    PassRecord& record = records.emplace_back();
    record.name = pass.name;
    record.disabled = std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end();
    if (record.disabled) continue;
    const Stopwatch watch;
    Result<bool> changed = pass.run(current);
    record.seconds = watch.seconds();
    if (!changed)
      return std::move(changed).status().with_context(fmt::format("pass {}", pass.name));
    record.changed = *changed;
    if (!record.changed) continue;
    Status legal = verify(current);
    if (!legal)
      return std::move(legal).with_context(fmt::format("module after pass {}", pass.name));
    TRY(dump(dumps, current, records.size(), pass.name));
  }
  module = std::move(current);
  return records;
}

}  // namespace collage
