#include "search/compact.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "partition/stated_places.h"

namespace collage {

TensorRef tensor_of(const DataflowGraph& graph, PostDfsIndex node) {
  // The leaves of a projected value start after those of the fields before it.
  size_t leaf = 0;
  while (const auto* item = as<TupleGetItemNode>(graph.node(node).expr)) {
    const std::vector<Type>& fields = item->tuple->type().fields();
    node = graph.node(node).inputs[0];
    if (node_role(graph, node) == NodeRole::kTuple) {
      node = graph.node(node).inputs[static_cast<size_t>(item->index)];
      continue;
    }
    for (int64_t k = 0; k < item->index; ++k)
      leaf += fields[static_cast<size_t>(k)].leaves().size();
  }
  return {node, leaf};
}

}  // namespace collage

namespace collage::search {

namespace {

class Builder {
 public:
  explicit Builder(const SearchProblem& problem) : problem_(problem), graph_(*problem.graph) {}

  Result<CompactProblem> run() {
    result_.problem = &problem_;
    number_nodes();
    number_groups();
    for (size_t c = 0; c < problem_.candidates.size(); ++c) add_candidate(c);
    finish_columns();
    TRY(check_covered());
    for (Group& group : result_.groups) fill_conversions(group);
    return std::move(result_);
  }

 private:
  bool needs_kernel(PostDfsIndex i) const {
    NodeRole role = node_role(graph_, i);
    return role == NodeRole::kKernel || (role == NodeRole::kView && problem_.views_need_kernels);
  }

  void number_nodes() {
    node_of_.assign(graph_.size(), -1);
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      if (needs_kernel(i)) {
        node_of_[i] = static_cast<int32_t>(result_.nodes.size());
        result_.nodes.push_back(i);
      }
  }

  // The tensor whose memory a node of tensor type shares while it is plain: views looked through.
  TensorRef root_of(PostDfsIndex node) const {
    TensorRef tensor = tensor_of(graph_, node);
    while (node_role(graph_, tensor.node) == NodeRole::kView && !needs_kernel(tensor.node))
      tensor = tensor_of(graph_, graph_.node(tensor.node).inputs[0]);
    return tensor;
  }

  uint32_t group_of(TensorRef root) {
    auto [it, inserted] = group_of_.emplace(root, static_cast<uint32_t>(result_.groups.size()));
    if (inserted) {
      Group group;
      group.tensor = root;
      group.root = node_of_[root.node];
      group.forms.push_back({root, plain_encoding(type_of(root)), true});
      add_passing_forms(group);
      result_.groups.push_back(std::move(group));
    }
    return it->second;
  }

  void add_passing_forms(Group& group) const {
    if (!problem_.passing_encodings) return;
    const TensorType type = type_of(group.tensor);
    for (const Encoding& encoding : problem_.passing_encodings(type))
      if (!(encoding == plain_encoding(type)))
        group.forms.push_back({group.tensor, encoding, encoding.is_linear(type.dtype)});
  }

  TensorType type_of(TensorRef tensor) const {
    return graph_.node(tensor.node).expr->type().leaves()[tensor.leaf];
  }

  void number_groups() {
    for (PostDfsIndex i = 0; i < graph_.size(); ++i) {
      if (needs_kernel(i) || node_role(graph_, i) == NodeRole::kVariable)
        for (size_t leaf = 0; leaf < graph_.node(i).expr->type().leaves().size(); ++leaf)
          group_of({i, leaf});
      if (node_role(graph_, i) == NodeRole::kVariable && graph_.node(i).expr->type().is_tensor())
        place_at_caller(result_.groups[group_of({i, 0})], i);
      if (needs_kernel(i))
        for_each_tensor_input(i, [&](TensorRef root) {
          std::vector<uint32_t>& readers = result_.groups[group_of(root)].readers;
          uint32_t node = static_cast<uint32_t>(node_of_[i]);
          if (readers.empty() || readers.back() != node) readers.push_back(node);
        });
    }
    mark_results(graph_.size() - 1);
  }

  template <typename F>
  void for_each_tensor_input(PostDfsIndex index, F&& f) {
    for (PostDfsIndex input : graph_.node(index).inputs) {
      NodeRole role = node_role(graph_, input);
      if (role == NodeRole::kConstant) continue;
      if (role == NodeRole::kTuple) {
        for_each_tensor_input(input, f);
      } else {
        f(root_of(input));
      }
    }
  }

  void mark_results(PostDfsIndex index) {
    const Expr& expr = graph_.node(index).expr;
    if (node_role(expr) == NodeRole::kTuple) {
      for (PostDfsIndex field : graph_.node(index).inputs) mark_results(field);
    } else if (expr->type().is_tuple()) {
      for (size_t leaf = 0; leaf < expr->type().leaves().size(); ++leaf)
        result_.groups[group_of({index, leaf})].is_result = true;
    } else if (node_role(expr) != NodeRole::kConstant) {
      Group& group = result_.groups[group_of(root_of(index))];
      const uint32_t before = group.at_caller;
      if (group.root >= 0) place_at_caller(group, index);
      if (std::exchange(group.is_result, true) && before != group.at_caller) group.at_caller = 0;
    }
  }

  // Unless no target is there.
  void place_at_caller(Group& group, PostDfsIndex value) const {
    const Encoding& host = group.forms[0].encoding;
    Encoding there = host;
    there.device = graph_.stated_places().at_caller(value);
    const TensorType type = type_of(group.tensor);
    const bool is_reached =
        there == host || (problem_.conversion_cost(type, host, there) < kInfinity &&
                          problem_.conversion_cost(type, there, host) < kInfinity);
    group.at_caller = is_reached ? form_of(group, group.tensor, there) : 0;
  }

  // The form's number; it is added where it is new.
  uint32_t form_of(Group& group, TensorRef tensor, const Encoding& encoding) const {
    if (encoding == plain_encoding(type_of(tensor))) return 0;
    const bool shared = encoding.is_linear(type_of(tensor).dtype);
    if (shared) tensor = group.tensor;
    for (uint32_t form = 1; form < group.forms.size(); ++form)
      if (group.forms[form].tensor == tensor && group.forms[form].encoding == encoding) return form;
    group.forms.push_back({tensor, encoding, shared});
    return static_cast<uint32_t>(group.forms.size() - 1);
  }

  void add_use(std::vector<Use>& uses, TensorRef tensor, TensorRef root, const Encoding& encoding) {
    uint32_t index = group_of(root);
    const Use use{index, form_of(result_.groups[index], tensor, encoding)};
    if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
  }

  void add_candidate(size_t c) {
    const CandidateCosts& costs = problem_.candidates[c];
    const SubGraph& sub_graph = costs.candidate->sub_graph;
    std::vector<uint32_t> nodes;
    sub_graph.inside().for_each([&](PostDfsIndex i) {
      if (node_of_[i] >= 0) nodes.push_back(static_cast<uint32_t>(node_of_[i]));
    });
    if (nodes.empty() || !costs.is_usable()) return;
    std::vector<TensorRef> inputs, input_roots, outputs, output_roots;
    sub_graph.input().for_each([&](PostDfsIndex i) {
      inputs.push_back(tensor_of(graph_, i));
      input_roots.push_back(root_of(i));
    });
    sub_graph.exit().for_each([&](PostDfsIndex i) {
      if (graph_.node(i).expr->type().is_tensor()) {
        outputs.push_back(tensor_of(graph_, i));
        output_roots.push_back(root_of(i));
      } else {
        for (size_t leaf = 0; leaf < graph_.node(i).expr->type().leaves().size(); ++leaf) {
          outputs.push_back({i, leaf});
          output_roots.push_back({i, leaf});
        }
      }
    });
    for (TensorRef root : output_roots)
      if (!sub_graph.inside().contains(root.node)) return;  // gives a view of what it takes
    const uint32_t kernel =
        kernels_.try_emplace({nodes, costs.candidate->spec->target}, uint32_t(kernels_.size()))
            .first->second;
    for (size_t v = 0; v < costs.variants.size(); ++v) {
      const VariantCost& variant = costs.variants[v];
      if (variant.variant.inputs.size() != inputs.size() ||
          variant.variant.outputs.size() != outputs.size())
        continue;  // does not fit the candidate
      if (variant.seconds == kInfinity || variant.error > problem_.max_error) continue;
      Column column;
      column.nodes = nodes;
      for (size_t k = 0; k < inputs.size(); ++k)
        add_use(column.inputs, inputs[k], input_roots[k], variant.variant.inputs[k]);
      for (size_t k = 0; k < outputs.size(); ++k)
        add_use(column.outputs, outputs[k], output_roots[k], variant.variant.outputs[k]);
      std::sort(column.inputs.begin(), column.inputs.end());
      std::sort(column.outputs.begin(), column.outputs.end());
      column.cost = variant.seconds + problem_.launch_penalty;
      if (problem_.max_error < kInfinity) column.error = variant.error;
      column.choice = {c, v, column.cost};
      column.kernel = kernel;
      result_.columns.push_back(std::move(column));
    }
  }

  // Merges columns of equal effect and finds where each input is read.
  void finish_columns() {
    std::vector<Column>& columns = result_.columns;
    auto effect = [](const Column& c) { return std::tie(c.nodes, c.inputs, c.outputs, c.kernel); };
    std::stable_sort(columns.begin(), columns.end(), [&](const Column& a, const Column& b) {
      if (effect(a) != effect(b)) return effect(a) < effect(b);
      return std::tie(a.cost, a.error) < std::tie(b.cost, b.error);
    });
    // The last one kept errs by less than those before it.
    columns.erase(std::unique(columns.begin(), columns.end(),
                              [&](const Column& kept, const Column& next) {
                                return effect(kept) == effect(next) && next.error >= kept.error;
                              }),
                  columns.end());
    for (Column& column : columns)
      for (const Use& use : column.inputs) {
        const std::vector<uint32_t>& readers = result_.groups[use.group].readers;
        uint32_t first = column.nodes.back();
        for (uint32_t node : column.nodes)
          if (std::binary_search(readers.begin(), readers.end(), node)) {
            first = node;
            break;
          }
        column.readers.push_back(first);
      }
  }

  Status check_covered() const {
    std::vector<bool> covered(result_.nodes.size());
    for (const Column& column : result_.columns)
      for (uint32_t node : column.nodes) covered[node] = true;
    std::map<std::string, size_t> missing;
    for (size_t n = 0; n < covered.size(); ++n)
      if (!covered[n]) {
        const auto* call = as<CallNode>(graph_.node(result_.nodes[n]).expr);
        ++missing[call->op != nullptr ? call->op->name : "call of a function"];
      }
    if (missing.empty()) return {};
    std::string list;
    for (const auto& [name, count] : missing)
      list += (list.empty() ? "" : ", ") + name + (count > 1 ? fmt::format(" ({})", count) : "");
    return unsupported("no kernel for {}", list);
  }

  void fill_conversions(Group& group) const {
    const size_t n = group.forms.size();
    group.conversions.assign(n * n, std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        const Form &from = group.forms[i], &to = group.forms[j];
        if (i != j && (from.shared || to.shared || from.tensor == to.tensor))
          group.conversions[i * n + j] = problem_.conversion_cost(
              type_of(converted_tensor(from, to)), from.encoding, to.encoding);
      }
  }

  const SearchProblem& problem_;
  const DataflowGraph& graph_;
  CompactProblem result_;
  std::vector<int32_t> node_of_;
  std::map<TensorRef, uint32_t> group_of_;
  std::map<std::pair<std::vector<uint32_t>, Target>, uint32_t> kernels_;
};

}  // namespace

Result<CompactProblem> make_compact(const SearchProblem& problem) { return Builder(problem).run(); }

}  // namespace collage::search
