#include "partition/rewrite.h"

#include <algorithm>
#include <unordered_map>

#include "base/name_supply.h"
#include "ir/visitor.h"
#include "partition/stated_kernels.h"
#include "partition/stated_targets.h"

namespace collage {

namespace {

enum class Form { kGlobal, kInline, kInLine };

size_t count_calls(const DataflowGraph& graph, const SubGraph& sub_graph) {
  size_t count = 0;
  sub_graph.inside().for_each(
      [&](PostDfsIndex i) { count += as<CallNode>(graph.node(i).expr) != nullptr; });
  return count;
}

Form form_of(const DataflowGraph& graph, const CandidatePartition& kernel, KernelForm wanted) {
  if (wanted != KernelForm::kByTarget)
    return wanted == KernelForm::kGlobal ? Form::kGlobal : Form::kInline;
  if (kernel.spec->is_host) return Form::kInLine;
  if (!kernel.spec->compiler.empty()) return Form::kGlobal;
  const SubGraph& sub_graph = kernel.sub_graph;
  bool alone = count_calls(graph, sub_graph) <= 1 && sub_graph.nested().empty();
  return alone ? Form::kInLine : Form::kInline;
}

Attrs joined(Attrs attrs, const Attrs& more) {
  for (const auto& [name, value] : more.entries()) attrs.set(name, value);
  return attrs;
}

// Labels in dataflow order: operators by name, those of a composite of several operators after the
// composite's own label (without the target's name, which comes first anyway).
std::string labels(const DataflowGraph& graph, const CandidatePartition& kernel) {
  std::unordered_map<PostDfsIndex, const SubGraph::Nested*> first_of;
  for (const SubGraph::Nested& nested : kernel.sub_graph.nested())
    if (count_calls(graph, *nested.sub_graph) > 1) {
      size_t first = nested.sub_graph->inside().first();
      while (as<CallNode>(graph.node(first).expr) == nullptr)
        first = nested.sub_graph->inside().next(first + 1);
      first_of.emplace(first, &nested);
    }
  std::string text;
  kernel.sub_graph.inside().for_each([&](PostDfsIndex i) {
    const auto* call = as<CallNode>(graph.node(i).expr);
    if (call == nullptr) return;
    if (auto it = first_of.find(i); it != first_of.end()) {
      std::string_view label = it->second->label;
      for (const std::string& own : {kernel.spec->name, kernel.spec->compiler})
        if (label.starts_with(own + ".")) label.remove_prefix(own.size() + 1);
      text += "+" + std::string(label);
    }
    text += "+" + call_label(graph.node(i).expr);
  });
  constexpr size_t kMaxName = 80;
  if (text.size() > kMaxName) text = text.substr(0, text.find('+', kMaxName / 2));
  return text.empty() ? text : text.substr(1);
}

class Writer {
 public:
  Writer(const DataflowGraph& graph, std::span<const KernelToWrite> kernels, const Module& module,
         const WriteOptions& options)
      : graph_(graph), kernels_(kernels), options_(options), names_(kernels.size()) {
    NameSupply symbols;
    for (const auto& [name, function] : module.functions) symbols.reserve(name);
    for (const auto& [name, function] : module.abstract_functions) symbols.reserve(name);
    // In the order of the function, whatever that of the kernels.
    std::vector<size_t> order(kernels.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return kernels[a].partition->sub_graph.inside().last() <
             kernels[b].partition->sub_graph.inside().last();
    });
    for (const KernelToWrite& kernel : kernels)
      forms_.push_back(form_of(graph, *kernel.partition, options.form));
    for (size_t k : order) {
      const CandidatePartition& kernel = *kernels[k].partition;
      names_[k] = labels(graph, kernel);
      if (forms_[k] == Form::kInLine) continue;
      const PartitionSpec& spec = *kernel.spec;
      names_[k] = symbols.fresh("collage_" + (spec.name.empty() ? spec.target.kind : spec.name) +
                                "_" + names_[k]);
      kernel.sub_graph.exit().for_each([&](PostDfsIndex i) { kernel_of_exit_.emplace(i, k); });
    }
  }

  Result<Function> run() {
    PostDfsIndex root = graph_.size() - 1;
    std::vector<PostDfsIndex> stack = {root};
    while (!stack.empty()) {
      PostDfsIndex index = stack.back();
      if (values_.count(index) != 0) {
        stack.pop_back();
        continue;
      }
      std::vector<PostDfsIndex> needed = needs(index);
      size_t before = stack.size();
      for (auto need = needed.rbegin(); need != needed.rend(); ++need)
        if (values_.count(*need) == 0) stack.push_back(*need);
      if (stack.size() == before) {
        TRY(build(index));
        stack.pop_back();
      } else if (stack.size() > graph_.size() * (graph_.size() + 1)) {
        return internal_error("the chosen kernels depend on one another in a cycle");
      }
    }
    const Function& function = graph_.function();
    return make_function(function->params, values_.at(root),
                         joined(without_stated_targets(function->attrs), options_.attrs));
  }

  std::map<std::string, Function> globals() && { return std::move(globals_); }
  std::vector<std::string> names() && { return std::move(names_); }

 private:
  std::vector<PostDfsIndex> needs(PostDfsIndex index) const {
    auto it = kernel_of_exit_.find(index);
    if (it == kernel_of_exit_.end()) return graph_.node(index).inputs;
    return kernels_[it->second]
        .partition->sub_graph.parameters(graph_, options_.constants)
        .elements();
  }

  Status build(PostDfsIndex index) {
    auto it = kernel_of_exit_.find(index);
    if (it == kernel_of_exit_.end()) {
      std::vector<Expr> inputs;
      bool same = true;
      const DataflowGraph::Node& node = graph_.node(index);
      for (PostDfsIndex input : node.inputs) {
        inputs.push_back(values_.at(input));
        same = same && inputs.back() == graph_.node(input).expr;
      }
      values_[index] = same ? node.expr : TRY(with_inputs(node.expr, inputs));
      return {};
    }
    const CandidatePartition& kernel = *kernels_[it->second].partition;
    const Attrs& attrs = kernels_[it->second].attrs;
    Function function = kernel.function(graph_, options_.constants);
    // A kernel that was a function already stays that one.
    if (!attrs.empty() && called_primitive(graph_.node(index).expr) != nullptr)
      function = TRY(inline_calls(function));
    const bool global = forms_[it->second] == Form::kGlobal;
    if (global || options_.form == KernelForm::kInline) {
      Attrs all = function->attrs;
      all.set("global_symbol", names_[it->second]);
      function = make_function(function->params, function->body, joined(std::move(all), attrs));
    }
    std::vector<Expr> args;
    kernel.sub_graph.parameters(graph_, options_.constants).for_each([&](PostDfsIndex i) {
      args.push_back(values_.at(i));
    });
    Expr callee = function;
    if (global) {
      globals_[names_[it->second]] = function;
      callee = make_global_var(names_[it->second], function->type());
    }
    Expr call = TRY(make_function_call(callee, args));
    std::vector<size_t> exits = kernel.sub_graph.exit().elements();
    for (size_t k = 0; k < exits.size(); ++k)
      values_[exits[k]] =
          exits.size() == 1 ? call : TRY(make_tuple_get_item(call, static_cast<int64_t>(k)));
    return {};
  }

  const DataflowGraph& graph_;
  const std::span<const KernelToWrite> kernels_;
  const WriteOptions& options_;
  std::vector<Form> forms_;
  std::vector<std::string> names_;
  std::unordered_map<PostDfsIndex, size_t> kernel_of_exit_;
  std::unordered_map<PostDfsIndex, Expr> values_;
  std::map<std::string, Function> globals_;
};

}  // namespace

std::vector<KernelToWrite> kernels_to_write(const std::vector<CandidatePartition>& partitions,
                                            const Attrs& attrs) {
  std::vector<KernelToWrite> kernels;
  for (const CandidatePartition& partition : partitions) kernels.push_back({&partition, attrs});
  return kernels;
}

Result<WrittenKernels> write_kernels(const DataflowGraph& graph,
                                     std::span<const KernelToWrite> kernels, const Module& module,
                                     const WriteOptions& options) {
  Writer writer(graph, kernels, module, options);
  Function function = TRY(writer.run());
  WrittenKernels result{module, {}};
  result.module.functions[options.function] = std::move(function);
  result.module.functions.merge(std::move(writer).globals());
  result.names = std::move(writer).names();
  return result;
}

}  // namespace collage
