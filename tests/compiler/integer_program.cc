#include "compiler/integer_program.h"

#include <Cbc_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "search/cover.h"

namespace collage::testing {

namespace {

constexpr double kScale = 1e6;  // the solver works in microseconds
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Terms = std::map<int, double>;  // by variable
struct Row {
  Terms terms;
  double low, high;
};

// A tensor with its views, by the tensor that a call or parameter gives.
struct ModelTensor {
  std::vector<std::pair<TensorRef, Encoding>> forms;  // the first is plain
  bool parameter = false, result = false;
  std::map<size_t, Terms> given;                    // by form: the variants that give it
  std::map<std::pair<PostDfsIndex, size_t>, Terms>  // by reading operator and form
      wanted;
  struct Arc {
    size_t from, to;
    int variable;
  };
  std::vector<Arc> arcs;
};

struct Column {
  size_t candidate, variant;
  std::vector<std::pair<TensorRef, size_t>> inputs, outputs;  // tensors and forms
};

class SolverProgram {
 public:
  SolverProgram(const SearchProblem& problem, double known)
      : problem_(problem), graph_(*problem.graph), known_(known) {}

  Result<IntegerOptimum> solve(double max_seconds) {
    auto begin = std::chrono::steady_clock::now();
    auto spent = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    add_columns();
    add_conversions();
    add_rows();
    IntegerOptimum optimum;
    for (bool again = true; again; ++optimum.rounds) {
      optimum.seconds = TRY(run(max_seconds - spent()));
      again = cut_rings();
      again = cut_deadlocks() || again;
    }
    optimum.variables = costs_.size();
    optimum.rows = rows_.size();
    optimum.solving_seconds = spent();
    return optimum;
  }

 private:
  TensorType type(TensorRef tensor) const {
    return graph_.node(tensor.node).expr->type().leaves()[tensor.leaf];
  }
  Encoding plain(TensorRef tensor) const { return plain_encoding(type(tensor)); }
  TensorRef root(TensorRef tensor) const {
    while (node_role(graph_, tensor.node) == NodeRole::kView)
      tensor = tensor_of(graph_, graph_.node(tensor.node).inputs[0]);
    return tensor;
  }
  std::vector<TensorRef> leaves(PostDfsIndex i) const {
    if (graph_.node(i).expr->type().is_tensor()) return {tensor_of(graph_, i)};
    std::vector<TensorRef> result;
    for (size_t leaf = 0; leaf < graph_.node(i).expr->type().leaves().size(); ++leaf)
      result.push_back({i, leaf});
    return result;
  }

  std::pair<TensorRef, size_t> form(TensorRef tensor, const Encoding& encoding) {
    ModelTensor& known = tensors_[root(tensor)];
    if (known.forms.empty()) known.forms.push_back({root(tensor), plain(root(tensor))});
    if (encoding == plain(tensor)) return {root(tensor), 0};
    auto it = std::find(known.forms.begin() + 1, known.forms.end(), std::pair(tensor, encoding));
    size_t at = static_cast<size_t>(it - known.forms.begin());
    if (it == known.forms.end()) known.forms.push_back({tensor, encoding});
    return {root(tensor), at};
  }

  int add_variable(double seconds) {
    costs_.push_back(seconds * kScale);
    return static_cast<int>(costs_.size()) - 1;
  }

  void add_columns() {
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      if (node_role(graph_, i) == NodeRole::kKernel) cover_[i];
    // Of variants with equal effect the cheapest.
    std::map<std::tuple<std::vector<PostDfsIndex>, std::vector<std::pair<TensorRef, size_t>>,
                        std::vector<std::pair<TensorRef, size_t>>>,
             Column>
        cheapest;
    auto seconds = [&](const Column& column) {
      return problem_.candidates[column.candidate].variants[column.variant].seconds;
    };
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      const SubGraph& sub_graph = problem_.candidates[c].candidate->sub_graph;
      bool gives_what_it_takes = false;
      std::vector<TensorRef> inputs, outputs;
      sub_graph.input().for_each([&](PostDfsIndex i) { inputs.push_back(tensor_of(graph_, i)); });
      sub_graph.exit().for_each([&](PostDfsIndex i) {
        for (TensorRef tensor : leaves(i)) {
          outputs.push_back(tensor);
          gives_what_it_takes =
              gives_what_it_takes || !sub_graph.inside().contains(root(tensor).node);
        }
      });
      if (gives_what_it_takes) continue;
      std::vector<PostDfsIndex> nodes;
      sub_graph.inside().for_each([&](PostDfsIndex i) {
        if (cover_.count(i)) nodes.push_back(i);
      });
      for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) {
        const Variant& variant = problem_.candidates[c].variants[v].variant;
        if (variant.inputs.size() != inputs.size() || variant.outputs.size() != outputs.size())
          continue;
        Column column{c, v, {}, {}};
        for (size_t k = 0; k < inputs.size(); ++k)
          column.inputs.push_back(form(inputs[k], variant.inputs[k]));
        for (size_t k = 0; k < outputs.size(); ++k)
          column.outputs.push_back(form(outputs[k], variant.outputs[k]));
        auto [it, inserted] = cheapest.try_emplace({nodes, column.inputs, column.outputs}, column);
        if (!inserted && seconds(column) < seconds(it->second)) it->second = column;
      }
    }
    for (auto& [effect, column] : cheapest) {
      int x = add_variable(seconds(column) + problem_.launch_penalty);
      for (PostDfsIndex node : std::get<0>(effect)) cover_[node][x] = 1;
      for (auto [tensor, form] : column.outputs) tensors_[tensor].given[form][x] = 1;
      for (auto [tensor, form] : column.inputs)
        for (PostDfsIndex node : std::get<0>(effect))
          if (reads(node, tensor)) tensors_[tensor].wanted[{node, form}][x] = 1;
      columns_.push_back(std::move(column));
    }
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      if (node_role(graph_, i) == NodeRole::kVariable) tensors_[{i, 0}].parameter = true;
    mark_results(graph_.size() - 1);
  }

  bool reads(PostDfsIndex node, TensorRef wanted) const {
    const std::vector<PostDfsIndex>& inputs = graph_.node(node).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](PostDfsIndex input) {
      if (node_role(graph_, input) == NodeRole::kTuple) return reads(input, wanted);
      return node_role(graph_, input) != NodeRole::kConstant &&
             graph_.node(input).expr->type().is_tensor() &&
             root(tensor_of(graph_, input)) == wanted;
    });
  }

  void mark_results(PostDfsIndex index) {
    if (node_role(graph_, index) == NodeRole::kConstant) return;
    if (node_role(graph_, index) == NodeRole::kTuple) {
      for (PostDfsIndex field : graph_.node(index).inputs) mark_results(field);
      return;
    }
    for (TensorRef tensor : leaves(index)) tensors_[root(tensor)].result = true;
  }

  void add_conversions() {
    for (auto& [name, tensor] : tensors_)
      for (size_t from = 0; from < tensor.forms.size(); ++from)
        for (size_t to = 0; to < tensor.forms.size(); ++to) {
          const auto& [source, before] = tensor.forms[from];
          const auto& [target, after] = tensor.forms[to];
          if (from == to || (from != 0 && to != 0 && source != target)) continue;
          TensorRef what = from != 0 ? source : target;
          double seconds = problem_.conversion_cost(type(what), from != 0 ? before : plain(what),
                                                    to != 0 ? after : plain(what)) +
                           problem_.launch_penalty;
          if (seconds < kInfinity) tensor.arcs.push_back({from, to, add_variable(seconds)});
        }
  }

  // Those forms of the tensor must be supplied by something outside of them where `terms` want one.
  void add_supply(const ModelTensor& tensor, const std::set<size_t>& forms, Terms terms,
                  double wanted = 0) {
    if (tensor.parameter && forms.count(0)) return;
    for (size_t form : forms)
      if (auto it = tensor.given.find(form); it != tensor.given.end())
        for (auto [x, one] : it->second) terms[x] -= one;
    for (const ModelTensor::Arc& arc : tensor.arcs)
      if (forms.count(arc.to) && !forms.count(arc.from)) terms[arc.variable] -= 1;
    rows_.push_back({std::move(terms), -kInfinity, -wanted});
  }

  void add_rows() {
    for (const auto& [node, terms] : cover_) rows_.push_back({terms, 1, 1});
    for (const auto& [name, tensor] : tensors_) {
      for (const auto& [place, terms] : tensor.wanted) add_supply(tensor, {place.second}, terms);
      if (tensor.result) add_supply(tensor, {0}, {}, 1);
      for (const ModelTensor::Arc& arc : tensor.arcs)
        add_supply(tensor, {arc.from}, {{arc.variable, 1}});
    }
  }

  Result<double> run(double max_seconds) {
    std::vector<std::vector<std::pair<int, double>>> by_column(costs_.size());
    for (size_t r = 0; r < rows_.size(); ++r)
      for (auto [variable, value] : rows_[r].terms)
        if (value != 0)
          by_column[static_cast<size_t>(variable)].emplace_back(static_cast<int>(r), value);
    std::vector<CoinBigIndex> starts = {0};
    std::vector<int> indices;
    std::vector<double> values;
    for (const auto& column : by_column) {
      for (auto [row, value] : column) {
        indices.push_back(row);
        values.push_back(value);
      }
      starts.push_back(static_cast<CoinBigIndex>(indices.size()));
    }
    std::vector<double> low(costs_.size(), 0), high(costs_.size(), 1), row_low, row_high;
    for (const Row& row : rows_) {
      row_low.push_back(row.low);
      row_high.push_back(row.high);
    }
    Cbc_Model* model = Cbc_newModel();
    Cbc_loadProblem(model, static_cast<int>(costs_.size()), static_cast<int>(rows_.size()),
                    starts.data(), indices.data(), values.data(), low.data(), high.data(),
                    costs_.data(), row_low.data(), row_high.data());
    for (size_t x = 0; x < costs_.size(); ++x) Cbc_setInteger(model, static_cast<int>(x));
    Cbc_setLogLevel(model, 0);
    Cbc_setParameter(model, "ratioGap", "0");
    Cbc_setParameter(model, "allowableGap", "0");
    Cbc_setParameter(model, "seconds", std::to_string(std::max(1.0, max_seconds)).c_str());
    // Beyond the solver's own tolerances, so that a cover as cheap as the known one is found.
    constexpr double kMargin = 1 + 1e-6;
    if (known_ < kInfinity)
      Cbc_setParameter(model, "cutoff", fmt::format("{:.9g}", known_ * kScale * kMargin).c_str());
    Cbc_solve(model);
    bool optimal = Cbc_isProvenOptimal(model) != 0;
    if (optimal) {
      const double* solution = Cbc_getColSolution(model);
      used_.assign(solution, solution + costs_.size());
    }
    Cbc_deleteModel(model);
    if (!optimal) return unsupported("CBC found no optimum");
    double cost = 0;  // of the rounded solution: the solver's own sum is off by its tolerance
    for (size_t x = 0; x < costs_.size(); ++x)
      if (used_[x] > 0.5) cost += costs_[x];
    return cost / kScale;
  }

  bool used(int variable) const { return used_[static_cast<size_t>(variable)] > 0.5; }
  bool any(const Terms& terms) const {
    return std::any_of(terms.begin(), terms.end(),
                       [&](const auto& term) { return used(term.first); });
  }

  bool cut_rings() {
    bool found = false;
    for (const auto& [name, tensor] : tensors_) {
      std::set<size_t> unsupplied;
      for (size_t form = 0; form < tensor.forms.size(); ++form) {
        auto it = tensor.given.find(form);
        if (!(tensor.parameter && form == 0) && (it == tensor.given.end() || !any(it->second)))
          unsupplied.insert(form);
      }
      for (bool progress = true; progress;) {
        progress = false;
        for (const ModelTensor::Arc& arc : tensor.arcs)
          if (used(arc.variable) && !unsupplied.count(arc.from) && unsupplied.erase(arc.to) > 0)
            progress = true;
      }
      for (const auto& [place, terms] : tensor.wanted)
        if (unsupplied.count(place.second) && any(terms)) {
          add_supply(tensor, unsupplied, terms);
          found = true;
        }
      if (tensor.result && unsupplied.count(0)) {
        add_supply(tensor, unsupplied, {}, 1);
        found = true;
      }
    }
    return found;
  }

  // Kernels that can never run: no more than all but one of them together.
  bool cut_deadlocks() {
    std::set<TensorRef> there;
    for (const auto& [name, tensor] : tensors_)
      if (tensor.parameter) there.insert(name);
    std::set<int> waiting;
    for (size_t x = 0; x < columns_.size(); ++x)
      if (used(static_cast<int>(x))) waiting.insert(static_cast<int>(x));
    for (bool progress = true; progress;) {
      progress = false;
      for (auto it = waiting.begin(); it != waiting.end();) {
        const Column& column = columns_[static_cast<size_t>(*it)];
        if (!std::all_of(column.inputs.begin(), column.inputs.end(),
                         [&](const auto& input) { return there.count(input.first) > 0; })) {
          ++it;
          continue;
        }
        for (const auto& output : column.outputs) there.insert(output.first);
        it = waiting.erase(it);
        progress = true;
      }
    }
    if (waiting.empty()) return false;
    // The same sub-graphs deadlock whatever their variants.
    Terms terms;
    for (int x : waiting) {
      const IndexSet& inside = inside_of(static_cast<size_t>(x));
      for (size_t other = 0; other < columns_.size(); ++other)
        if (inside_of(other) == inside) terms[static_cast<int>(other)] = 1;
    }
    rows_.push_back({std::move(terms), -kInfinity, static_cast<double>(waiting.size()) - 1});
    return true;
  }
  const IndexSet& inside_of(size_t x) const {
    return problem_.candidates[columns_[x].candidate].candidate->sub_graph.inside();
  }

  const SearchProblem& problem_;
  const DataflowGraph& graph_;
  const double known_;
  std::map<PostDfsIndex, Terms> cover_;
  std::map<TensorRef, ModelTensor> tensors_;
  std::vector<Column> columns_;  // the first variables
  std::vector<double> costs_;
  std::vector<Row> rows_;
  std::vector<double> used_;
};

}  // namespace

Result<IntegerOptimum> solve_integer_program(const SearchProblem& problem, double max_seconds,
                                             double known) {
  return SolverProgram(problem, known).solve(max_seconds);
}

}  // namespace collage::testing
