#include "search/side_by_side.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace collage {

namespace {

constexpr double kLeastPart = 0.05;  // of a cover's time that a branch takes, to be moved
constexpr double kLeastGain = 0.01;  // of its time, by a move
constexpr size_t kMostBranches = 8, kMostMoves = 4;
constexpr int kBranchLimit = 100;  // of one search: there are some dozens

using Device = std::pair<std::string, int>;

Device device_of(const CandidateCosts& candidate) {
  const VirtualDevice& device = candidate.candidate->spec->target.device;
  return {device.device, device.id};
}

class Steps {
 public:
  Steps(const SearchProblem& problem, const Cover& cover)
      : problem_(problem), graph_(*problem.graph) {
    size_t next = 0;
    const auto convert_before = [&](size_t kernel) {
      for (; next < cover.conversions.size() && cover.conversions[next].before <= kernel; ++next)
        add(cover.conversions[next]);
    };
    for (size_t k = 0; k < cover.kernels.size(); ++k) {
      convert_before(k);
      add(cover.kernels[k]);
    }
    convert_before(cover.kernels.size());
  }
  std::vector<DeviceStep> take() { return std::move(steps_); }

 private:
  void add(const Cover::Kernel& kernel) {
    const CandidateCosts& chosen = problem_.candidates[kernel.candidate];
    const VariantCost& variant = chosen.variants[kernel.variant];
    DeviceStep step{{}, chosen.candidate->spec->target.device};
    step.seconds = variant.seconds + problem_.launch_penalty;
    const SubGraph& sub_graph = chosen.candidate->sub_graph;
    size_t input = 0;
    sub_graph.input().for_each(
        [&](PostDfsIndex node) { add_sources(step, node, variant.variant.inputs[input++]); });
    sub_graph.exit().for_each([&](PostDfsIndex node) { writer_[node] = steps_.size(); });
    steps_.push_back(std::move(step));
  }

  void add(const ChosenConversion& conversion) {
    DeviceStep step;
    step.reads = conversion.from.device;
    step.writes = conversion.to.device;
    step.seconds = conversion.seconds + problem_.launch_penalty;
    add_sources(step, conversion.tensor.node, conversion.from);
    converted_.push_back({conversion.tensor.node, conversion.to, steps_.size()});
    steps_.push_back(std::move(step));
  }

  // Whatever made the tensor of that node in that encoding. Views and tuples nobody made: they are
  // what they are made of.
  void add_sources(DeviceStep& step, PostDfsIndex node, const Encoding& encoding) const {
    for (size_t c = converted_.size(); c-- > 0;)
      if (converted_[c].node == node && converted_[c].to == encoding)
        return step.sources.push_back(converted_[c].step);
    if (const auto writer = writer_.find(node); writer != writer_.end())
      return step.sources.push_back(writer->second);
    const NodeRole role = node_role(graph_, node);
    if (role == NodeRole::kVariable || role == NodeRole::kConstant) return;
    for (PostDfsIndex input : graph_.node(node).inputs) add_sources(step, input, encoding);
  }

  struct Converted {
    PostDfsIndex node;
    Encoding to;
    size_t step;
  };
  const SearchProblem& problem_;
  const DataflowGraph& graph_;
  std::vector<DeviceStep> steps_;
  std::map<PostDfsIndex, size_t> writer_;
  std::vector<Converted> converted_;
};

// Where the graph forks, what only one of the ways leads to; likewise of its inputs.
std::vector<IndexSet> branches_of(const DataflowGraph& graph) {
  std::vector<IndexSet> branches;
  const auto add_fork = [&](const std::vector<PostDfsIndex>& ways) {
    if (ways.size() < 2) return;
    for (PostDfsIndex way : ways) {
      IndexSet branch = graph.downstream(way);
      branch.insert(way);
      for (PostDfsIndex other : ways) {
        if (other == way) continue;
        branch -= graph.downstream(other);
        branch.erase(other);
      }
      if (!branch.empty() && std::find(branches.begin(), branches.end(), branch) == branches.end())
        branches.push_back(std::move(branch));
    }
  };
  std::vector<PostDfsIndex> variables;
  for (const DataflowGraph::Node& node : graph.nodes()) {
    if (node_role(node.expr) == NodeRole::kConstant) continue;
    if (node_role(node.expr) == NodeRole::kVariable) variables.push_back(node.index);
    add_fork(node.outputs);
  }
  add_fork(variables);
  return branches;
}

// Those that take the most of the cover, by what its kernels inside of them do.
std::vector<IndexSet> weighty(const std::vector<IndexSet>& branches, const SearchProblem& problem,
                              const Cover& cover) {
  std::vector<std::pair<double, const IndexSet*>> weighed;
  for (const IndexSet& branch : branches) {
    double seconds = 0;
    for (const Cover::Kernel& kernel : cover.kernels) {
      const CandidateCosts& chosen = problem.candidates[kernel.candidate];
      if (chosen.candidate->sub_graph.inside().is_subset_of(branch))
        seconds += chosen.variants[kernel.variant].seconds;
    }
    if (seconds >= kLeastPart * cover.seconds) weighed.emplace_back(seconds, &branch);
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<IndexSet> result;
  for (size_t i = 0; i < std::min(weighed.size(), kMostBranches); ++i)
    result.push_back(*weighed[i].second);
  return result;
}

// The problem with the branch on that device alone; none where nothing of it is elsewhere.
std::optional<SearchProblem> moved(const SearchProblem& problem, const Cover& cover,
                                   const IndexSet& branch, const Device& device) {
  const auto is_elsewhere = [&](const CandidateCosts& candidate) {
    return device_of(candidate) != device &&
           candidate.candidate->sub_graph.inside().intersects(branch);
  };
  if (std::none_of(cover.kernels.begin(), cover.kernels.end(), [&](const Cover::Kernel& kernel) {
        return is_elsewhere(problem.candidates[kernel.candidate]);
      }))
    return std::nullopt;
  SearchProblem result = problem;
  for (CandidateCosts& candidate : result.candidates)
    if (is_elsewhere(candidate))
      for (VariantCost& variant : candidate.variants) variant.seconds = kInfinity;
  return result;
}

}  // namespace

std::vector<DeviceStep> device_steps(const SearchProblem& problem, const Cover& cover) {
  return Steps(problem, cover).take();
}

double overlapped_seconds(const SearchProblem& problem, const Cover& cover) {
  return overlapped_seconds(device_steps(problem, cover));
}

SearchResult cover_side_by_side(const SearchProblem& problem, Cover cover) {
  SearchResult result;
  std::set<Device> devices;
  for (const CandidateCosts& candidate : problem.candidates)
    if (candidate.is_usable()) devices.insert(device_of(candidate));
  if (devices.size() < 2) return result;
  SearchOptions options;
  options.top_k = 1;
  options.max_branches = kBranchLimit;
  SearchProblem current = problem;
  const std::vector<IndexSet> branches = branches_of(*problem.graph);
  double least = overlapped_seconds(problem, cover);
  for (size_t move = 0; move < kMostMoves; ++move) {
    const double most = (1 - kLeastGain) * least;
    const Cover before = cover;
    std::optional<SearchProblem> better;
    for (const IndexSet& branch : weighty(branches, problem, before))
      for (const Device& device : devices) {
        std::optional<SearchProblem> tried = moved(current, before, branch, device);
        if (!tried) continue;
        Result<SearchResult> found = search_covers(*tried, options);
        if (!found) continue;
        result.counts += found->counts;
        result.seconds += found->seconds;
        const double seconds = overlapped_seconds(problem, found->covers[0]);
        if (seconds >= std::min(most, least)) continue;
        least = seconds;
        cover = std::move(found->covers[0]);
        better = std::move(tried);
      }
    if (!better) break;
    current = std::move(*better);
    result.covers = {cover};
  }
  return result;
}

}  // namespace collage
