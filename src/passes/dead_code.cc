#include "passes/dead_code.h"

#include <set>
#include <vector>

#include "ir/visitor.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

// The globals that occur in the function, nested literals included.
void collect_globals(const FunctionNode& function, std::vector<std::string>& names) {
  for (const Expr& expr : post_order(function.body)) {
    if (const auto* global = as<GlobalVarNode>(expr)) names.push_back(global->name);
    if (const auto* inner = as<FunctionNode>(expr)) collect_globals(*inner, names);
  }
}

}  // namespace

Result<bool> remove_dead_code(Module& module) {
  if (module.functions.count("main") == 0) return false;
  std::set<std::string> reached;
  std::vector<std::string> work = {"main"};
  while (!work.empty()) {
    std::string name = work.back();
    work.pop_back();
    if (!reached.insert(name).second) continue;
    auto function = module.functions.find(name);
    if (function != module.functions.end()) collect_globals(*function->second, work);
  }
  const auto size = [&module] {
    return module.functions.size() + module.abstract_functions.size() + module.external_mods.size();
  };
  const size_t before = size();
  std::erase_if(module.functions, [&](const auto& entry) { return !reached.count(entry.first); });
  std::erase_if(module.abstract_functions,
                [&](const auto& entry) { return !reached.count(entry.first); });
  const std::set<std::string> symbols = tensor_program::declared_labels(module);
  std::erase_if(module.external_mods,
                [&](const auto& entry) { return !symbols.count(entry.first); });
  return size() != before;
}

}  // namespace collage
