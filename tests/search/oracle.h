// An independent way to the cheapest cover, for tests: every choice of disjoint candidates and
// variants is tried, but for those whose kernels alone cost more than the best found, and for each
// tensor the cheapest set of conversions is found by a shortest path over sets of forms.
// Exponential in everything. And the greedy cover, to see what searching gains.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <vector>

#include "partition/stated_places.h"
#include "search/cover.h"
#include "search/problem.h"

namespace collage {

class Oracle {
 public:
  explicit Oracle(const SearchProblem& problem) : problem_(problem), graph_(*problem.graph) {
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      if (node_role(graph_, i) == NodeRole::kKernel) kernels_.insert(i);
    // A conversion may pass through any encoding that some variant speaks of.
    for (const CandidateCosts& costs : problem.candidates)
      for (const VariantCost& variant : costs.variants) {
        for_each_boundary(costs.candidate->sub_graph, variant.variant,
                          [&](TensorRef tensor, const Encoding& encoding, bool) {
                            forms_[root(tensor)].insert({tensor, encoding});
                          });
      }
    share_.assign(graph_.size(), kInfinity);
    for (const CandidateCosts& costs : problem.candidates) {
      IndexSet nodes = costs.candidate->sub_graph.inside() & kernels_;
      for (const VariantCost& variant : costs.variants)
        nodes.for_each([&](PostDfsIndex i) {
          share_[i] = std::min(share_[i], (variant.seconds + problem.launch_penalty) /
                                              static_cast<double>(nodes.size()));
        });
    }
  }

  const std::vector<Cover::Kernel>& best_kernels() const { return best_kernels_; }
  // Infinity when there is none.
  double best() {
    IndexSet covered;
    choose(covered, 0, 0);
    return best_;
  }

  // Always the kernel that can run next and costs least for each operator, its conversions
  // included; infinity where that leads nowhere.
  double greedy() const {
    std::vector<Cover::Kernel> chosen;
    IndexSet covered;
    double spent = 0;
    while (covered.size() < kernels_.size()) {
      double least = kInfinity, then = 0;
      Cover::Kernel next;
      for (size_t c = 0; c < problem_.candidates.size(); ++c) {
        IndexSet inside = problem_.candidates[c].candidate->sub_graph.inside() & kernels_;
        if (inside.empty() || inside.intersects(covered)) continue;
        for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) {
          chosen.push_back({c, v});
          double cost = this->cost(chosen, false);
          chosen.pop_back();
          double each = (cost - spent) / static_cast<double>(inside.size());
          if (cost == kInfinity || each >= least) continue;
          least = each;
          then = cost;
          next = {c, v};
        }
      }
      if (least == kInfinity) return kInfinity;
      chosen.push_back(next);
      covered |= candidate(next).sub_graph.inside() & kernels_;
      spent = then;
    }
    return cost(chosen);
  }

  // What the kernels cost with the best conversions; infinity when they cannot run. When they do
  // not cover everything, the results need not be there.
  double cost(const std::vector<Cover::Kernel>& kernels, bool complete = true) const {
    if (!acyclic(kernels)) return kInfinity;
    std::map<TensorRef, std::set<Item>> given, wanted;  // by root tensor
    double total = 0;
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      if (node_role(graph_, i) == NodeRole::kVariable) given[{i, 0}].insert(at_caller(i, {i, 0}));
    for (const Cover::Kernel& kernel : kernels) {
      const SubGraph& sub_graph = candidate(kernel).sub_graph;
      const VariantCost& variant = problem_.candidates[kernel.candidate].variants[kernel.variant];
      total += variant.seconds + problem_.launch_penalty;
      for_each_boundary(sub_graph, variant.variant,
                        [&](TensorRef tensor, const Encoding& encoding, bool input) {
                          (input ? wanted : given)[root(tensor)].insert({tensor, encoding});
                        });
    }
    std::map<TensorRef, std::set<Item>> results;
    if (complete) want_results(graph_.size() - 1, results);
    for (const auto& [root, items] :
         results)  // in several places: on the host, from where a run copies
      wanted[root].insert(items.size() == 1 ? *items.begin() : Item{root, plain(root)});
    for (const auto& [group, items] : wanted) {
      auto known = forms_.find(group);
      total += conversions(given[group], items,
                           known == forms_.end() ? std::set<Item>{} : known->second);
      if (total == kInfinity) break;
    }
    return total;
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  using Item = std::pair<TensorRef, Encoding>;

  // visit(tensor, encoding, is input) for everything that crosses the boundary.
  template <typename Visit>
  void for_each_boundary(const SubGraph& sub_graph, const Variant& variant, Visit&& visit) const {
    size_t k = 0;
    sub_graph.input().for_each(
        [&](PostDfsIndex i) { visit(tensor_of(graph_, i), variant.inputs[k++], true); });
    k = 0;
    sub_graph.exit().for_each([&](PostDfsIndex i) {
      const Type& type = graph_.node(i).expr->type();
      for (size_t leaf = 0; leaf < type.leaves().size(); ++leaf)
        visit(type.is_tensor() ? tensor_of(graph_, i) : TensorRef{i, leaf}, variant.outputs[k++],
              false);
    });
  }

  const CandidatePartition& candidate(const Cover::Kernel& kernel) const {
    return *problem_.candidates[kernel.candidate].candidate;
  }
  TensorType type(TensorRef tensor) const {
    return graph_.node(tensor.node).expr->type().leaves()[tensor.leaf];
  }
  Encoding plain(TensorRef tensor) const { return plain_encoding(type(tensor)); }
  TensorRef root(TensorRef tensor) const {
    while (node_role(graph_, tensor.node) == NodeRole::kView)
      tensor = tensor_of(graph_, graph_.node(tensor.node).inputs[0]);
    return tensor;
  }
  void want_results(PostDfsIndex index, std::map<TensorRef, std::set<Item>>& wanted) const {
    if (node_role(graph_, index) == NodeRole::kTuple) {
      for (PostDfsIndex field : graph_.node(index).inputs) want_results(field, wanted);
      return;
    }
    const TensorRef made = root(tensor_of(graph_, index));
    if (node_role(graph_, made.node) != NodeRole::kVariable)  // which a run copies for nothing
      wanted[made].insert(at_caller(index, made));
  }
  // The form in which a parameter exists or a result is wanted.
  Item at_caller(PostDfsIndex index, TensorRef tensor) const {
    const Encoding host = plain(tensor);
    Encoding there = host;
    there.device = graph_.stated_places().at_caller(index);
    const bool is_reached = problem_.conversion_cost(type(tensor), there, host) < kInfinity &&
                            problem_.conversion_cost(type(tensor), host, there) < kInfinity;
    return {tensor, is_reached ? there : host};
  }

  // Cheapest way from the given items to a set that holds all wanted ones.
  double conversions(const std::set<Item>& given, const std::set<Item>& wanted,
                     const std::set<Item>& known) const {
    // Row-major memory, of whatever device, serves a tensor and its views alike.
    std::vector<Item> items;
    auto position = [&](Item item) {
      if (is_linear(item)) item.first = root(item.first);
      auto it = std::find(items.begin(), items.end(), item);
      if (it == items.end()) it = items.insert(items.end(), item);
      return static_cast<size_t>(it - items.begin());
    };
    unsigned start = 0, goal = 0;
    for (const Item& item : given) start |= 1u << position(item);
    for (const Item& item : wanted) goal |= 1u << position(item);
    for (const Item& item : known) position(item);
    if (!items.empty()) position({items[0].first, plain(items[0].first)});
    std::map<unsigned, double> distance{{start, 0}};
    std::priority_queue<std::pair<double, unsigned>, std::vector<std::pair<double, unsigned>>,
                        std::greater<>>
        queue;
    queue.push({0, start});
    while (!queue.empty()) {
      auto [d, set] = queue.top();
      queue.pop();
      if (d > distance[set]) continue;
      if ((set & goal) == goal) return d;
      for (size_t from = 0; from < items.size(); ++from)
        for (size_t to = 0; to < items.size(); ++to) {
          if (!(set >> from & 1) || (set >> to & 1)) continue;
          double next = d + step(items[from], items[to]);
          unsigned larger = set | 1u << to;
          if (next == kInfinity) continue;
          auto it = distance.find(larger);
          if (it != distance.end() && it->second <= next) continue;
          distance[larger] = next;
          queue.push({next, larger});
        }
    }
    return kInfinity;
  }

  bool is_linear(const Item& item) const { return item.second.is_linear(type(item.first).dtype); }

  double step(const Item& from, const Item& to) const {
    if (from.first != to.first && !is_linear(from) && !is_linear(to)) return kInfinity;
    return problem_.conversion_cost(type((is_linear(to) ? from : to).first), from.second,
                                    to.second) +
           problem_.launch_penalty;
  }

  bool acyclic(const std::vector<Cover::Kernel>& kernels) const {
    std::vector<size_t> done;
    IndexSet available;
    for (const DataflowGraph::Node& node : graph_.nodes())
      if (node_role(node.expr) == NodeRole::kVariable) available.insert(node.index);
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t k = 0; k < kernels.size(); ++k) {
        if (std::find(done.begin(), done.end(), k) != done.end()) continue;
        bool ready = true;
        candidate(kernels[k]).sub_graph.input().for_each([&](PostDfsIndex i) {
          TensorRef tensor = root(tensor_of(graph_, i));
          ready = ready && available.contains(tensor.node);
        });
        if (!ready) continue;
        candidate(kernels[k]).sub_graph.exit().for_each([&](PostDfsIndex i) {
          available.insert(graph_.node(i).expr->type().is_tensor() ? root(tensor_of(graph_, i)).node
                                                                   : i);
        });
        done.push_back(k);
        progress = true;
      }
    }
    return done.size() == kernels.size();
  }

  void choose(const IndexSet& covered, double spent, double squared_errors) {
    if (squared_errors > problem_.max_error * problem_.max_error) return;
    size_t next = IndexSet::kNone;
    double least = spent;  // with the other nodes' cheapest shares
    kernels_.for_each([&](size_t i) {
      if (covered.contains(i)) return;
      if (next == IndexSet::kNone) next = i;
      least += share_[i];
    });
    if (least * (1 - 1e-9) > best_) return;
    if (next == IndexSet::kNone) {
      double found = cost(chosen_);
      if (found < best_) best_kernels_ = chosen_;
      best_ = std::min(best_, found);
      return;
    }
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      IndexSet inside = problem_.candidates[c].candidate->sub_graph.inside() & kernels_;
      if (!inside.contains(next) || inside.intersects(covered)) continue;
      for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) {
        chosen_.push_back({c, v});
        const VariantCost& variant = problem_.candidates[c].variants[v];
        choose(covered | inside, spent + variant.seconds + problem_.launch_penalty,
               squared_errors + variant.error * variant.error);
        chosen_.pop_back();
      }
    }
  }

  const SearchProblem& problem_;
  const DataflowGraph& graph_;
  IndexSet kernels_;
  std::vector<double> share_;  // by node: the least that a kernel costs for each of its nodes
  std::map<TensorRef, std::set<Item>> forms_;
  std::vector<Cover::Kernel> chosen_, best_kernels_;
  double best_ = kInfinity;
};

}  // namespace collage
