#include "compiler/claimed_kernels.h"

#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/visitor.h"
#include "partition/gather.h"
#include "partition/lightweight.h"
#include "partition/rewrite.h"
#include "partition/rules/df_pattern.h"
#include "partition/stated_kernels.h"
#include "passes/inline_functions.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

// Whether it holds a call of a kernel that somebody decided on.
bool calls_kernel(const DataflowGraph& graph, const CandidatePartition& candidate) {
  bool found = false;
  candidate.sub_graph.inside().for_each(
      [&](PostDfsIndex i) { found = found || called_primitive(graph.node(i).expr) != nullptr; });
  return found;
}

// Of each function that is no kernel itself, the spec's candidates that fit together, with these
// attributes. The constraints are for this claim alone.
Result<Module> claim(const Module& module, const PartitionSpecPtr& spec,
                     const TargetConstraints& constraints, const Attrs& attrs) {
  Module result = module;
  TRY(tensor_program::link_programs(result));  // calls that rules and patterns know
  const Module annotated = constraints.annotated(result);
  for (const auto& [name, function] : annotated.functions) {
    if (function->attrs.has("Primitive")) continue;
    const DataflowGraph graph(untangle_tuples(function));
    TRY(graph.stated_targets().status());
    TRY(check_no_scopes(graph));
    const std::vector<PartitionSpecPtr> specs = {spec};
    std::vector<CandidatePartition> found = gather_candidates(graph, specs);
    std::erase_if(
        found, [&](const CandidatePartition& candidate) { return calls_kernel(graph, candidate); });
    const std::vector<CandidatePartition> kernels = partition_lightly(graph, std::move(found));
    if (kernels.empty()) continue;
    WriteOptions writing;
    writing.form = KernelForm::kGlobal;
    writing.function = name;
    writing.attrs = result.functions.at(name)->attrs;
    result = TRY(write_kernels(graph, kernels_to_write(kernels, attrs), result, writing)).module;
  }
  return result;
}

// Calls of graph functions that are no kernels, as calls of literals, which patterns see into.
class LiteralCalls {
 public:
  static Result<LiteralCalls> of(const Module& module) {
    LiteralCalls calls;
    for (const auto& [name, function] : module.functions) {
      if (name == "main" || function->attrs.has("Primitive")) continue;
      calls.literals_[name] = TRY(inlined_function(module, name));
      calls.names_[calls.literals_[name].get()] = name;
    }
    return calls;
  }

  Status write(Module& module) const {
    return change_callees(module, [&](const Expr& callee) -> Expr {
      const auto* global = as<GlobalVarNode>(callee);
      const auto found = global == nullptr ? literals_.end() : literals_.find(global->name);
      return found == literals_.end() ? nullptr : Expr(found->second);
    });
  }

  // Kernels hold what their callees compute; all other functions call by name again.
  Status take_back(Module& module) const {
    TRY(change_callees(module, [&](const Expr& callee) -> Expr {
      const auto found = names_.find(as<FunctionNode>(callee));
      return found == names_.end() ? nullptr : make_global_var(found->second, callee->type());
    }));
    std::set<const FunctionNode*> functions;
    for (const auto& [function, name] : names_) functions.insert(function);
    return take_apart(module, functions).status();
  }

 private:
  // Of what is no kernel. `other` gives null where a callee stays.
  static Status change_callees(Module& module, const std::function<Expr(const Expr&)>& other) {
    for (auto& [name, function] : module.functions) {
      if (function->attrs.has("Primitive")) continue;
      Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
        const auto* call = as<CallNode>(rebuilt);
        const Expr callee = call == nullptr || !call->callee ? nullptr : other(call->callee);
        if (callee == nullptr) return rebuilt;
        return make_function_call(callee, call->args, rebuilt->origin());
      });
      function = TRY(rewriter.rewrite(function));
    }
    return {};
  }

  std::map<std::string, Function> literals_;
  std::unordered_map<const FunctionNode*, std::string> names_;
};

}  // namespace

Result<Module> claim_for_target(const Module& module, const PartitionSpecPtr& spec,
                                const TargetConstraints& constraints) {
  return claim(module, spec, constraints, {{"Compiler", toolchain_of(*spec)}});
}

Result<Module> claim_matches(const Module& module, const DFPattern& pattern,
                             const std::string& label, const std::string& compiler) {
  const auto spec = std::make_shared<const PartitionSpec>(
      PartitionSpec{label, std::make_shared<const DFPatternPartitionRule>(label, pattern),
                    Target{label, {}, {}}});
  Attrs attrs{{"Composite", label}};
  if (!compiler.empty()) attrs.set("Compiler", compiler);
  const LiteralCalls calls = TRY(LiteralCalls::of(module));
  Module changed = module;
  TRY(calls.write(changed));
  Module result = TRY(claim(changed, spec, {}, attrs));
  TRY(calls.take_back(result));
  return result;
}

}  // namespace collage
