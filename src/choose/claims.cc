#include "choose/claims.h"

#include <algorithm>
#include <map>

#include "backend/offer.h"
#include "base/no_exceptions.h"
#include "choose/tuning_task.h"
#include "partition/rules/rule.h"
#include "partition/stated_targets.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

// Larger candidates with a node that were asked for in vain; backends that take a node at all
// mostly take it in a small one.
constexpr int kMostRefused = 8;

// Asks backends what they offer; equal functions once.
class Offers {
 public:
  Offers(const DataflowGraph& graph, const ProgramOptions& options) : extraction_(graph) {
    compile_.threads = ThreadTeam(options.threads).size();
    if (options.max_error > 0) compile_.rounding = RoundingLimit::kAny;
  }

  // Empty where the candidate's backend has variants for it, else the reason why it has none.
  Result<std::string> refusal(const CandidatePartition& candidate) {
    const TaskExtraction::Added added = TRY(extraction_.add(candidate));
    const Target& target = candidate.spec->target;
    auto [known, is_new] = refusals_.try_emplace({added.task, target.to_string()});
    if (is_new) known->second = ask(added.function, target);
    return known->second;
  }

 private:
  std::string ask(const Function& function, const Target& target) const {
    const Backend* backend = find_backend(target.kind);
    if (backend == nullptr) return "there is no such backend";
    Result<std::vector<Variant>> variants =
        without_exceptions([&] { return offered_variants(*backend, function, target, compile_); });
    if (variants) return variants->empty() ? "no variants" : "";
    const std::string prefix = backend->name() + ": ";
    const std::string& reason = variants.status().message();
    return reason.rfind(prefix, 0) == 0 ? reason.substr(prefix.size()) : reason;
  }

  TaskExtraction extraction_;
  CompileOptions compile_;
  std::map<std::pair<size_t, std::string>, std::string> refusals_;
};

// One target's claim on the graph.
class Claimant {
 public:
  Claimant(const Candidates& candidates, const PartitionSpecPtr& spec, Offers& offers)
      : graph_(*candidates.graph), spec_(spec), offers_(offers) {
    std::map<size_t, std::vector<const CandidatePartition*>> by_size;
    for (const CandidatePartition& candidate : candidates.found)
      if (candidate.spec == spec)
        by_size[candidate.sub_graph.inside().size()].push_back(&candidate);
    for (const auto& [size, some] : by_size) own_.insert(own_.end(), some.begin(), some.end());
  }

  size_t candidates() const { return own_.size(); }

  // The kernel nodes that it claims.
  Result<IndexSet> claim(const IndexSet& kernel_nodes) {
    IndexSet claimed;
    std::map<PostDfsIndex, int> refused;
    for (const CandidatePartition* candidate : own_) {
      const IndexSet nodes = candidate->sub_graph.inside() & kernel_nodes;
      bool worth_asking = false;
      nodes.for_each([&](size_t node) {
        worth_asking = worth_asking || (!claimed.contains(node) && refused[node] < kMostRefused);
      });
      if (!worth_asking) continue;
      const std::string refusal = TRY(offers_.refusal(*candidate));
      if (refusal.empty()) claimed |= nodes;
      nodes.for_each([&](size_t node) {
        if (refusal.empty()) return;
        ++refused[node];
        reasons_.try_emplace(node, refusal);  // that of the smallest
      });
    }
    return claimed;
  }

  // Why it does not claim a node.
  Result<std::string> reason(PostDfsIndex node) {
    if (!graph_.stated_targets().allow(spec_->target, IndexSet{node}))
      return std::string("--exclude or --pin keeps it away");
    if (auto known = reasons_.find(node); known != reasons_.end()) return known->second;
    const IndexSet alone = with_tuple_arguments(graph_, IndexSet{node});
    const std::string refusal =
        TRY(offers_.refusal(CandidatePartition{"", SubGraph::of(graph_, alone), spec_}));
    return refusal.empty() ? std::string("no rule of it matches here") : refusal;
  }

 private:
  const DataflowGraph& graph_;
  const PartitionSpecPtr& spec_;
  Offers& offers_;
  std::vector<const CandidatePartition*> own_;  // small ones first
  std::map<PostDfsIndex, std::string> reasons_;
};

}  // namespace

Result<Claims> find_claims(const Candidates& candidates, const ProgramOptions& options) {
  const DataflowGraph& graph = *candidates.graph;
  IndexSet kernel_nodes, claimed_by_any;
  for (const DataflowGraph::Node& node : graph.nodes())
    if (node_role(node.expr) == NodeRole::kKernel) kernel_nodes.insert(node.index);

  Claims claims;
  claims.kernel_nodes = kernel_nodes.elements();
  Offers offers(graph, options);
  for (const PartitionSpecPtr& spec : candidates.specs) {
    if (spec->is_host) continue;
    Claimant claimant(candidates, spec, offers);
    const IndexSet claimed = TRY(claimant.claim(kernel_nodes));
    claims.targets.push_back({spec->target.to_string(), claimant.candidates(), claimed.elements()});
    claimed_by_any |= claimed;
    for (PostDfsIndex node : claims.kernel_nodes)
      if (!claimed.contains(node))
        claims.refusals.push_back({node, spec->target.to_string(), TRY(claimant.reason(node))});
  }
  std::stable_sort(claims.refusals.begin(), claims.refusals.end(),
                   [](const auto& a, const auto& b) { return a.node < b.node; });
  for (PostDfsIndex node : claims.kernel_nodes)
    if (!claimed_by_any.contains(node)) claims.on_host.push_back(node);
  return claims;
}

}  // namespace collage
