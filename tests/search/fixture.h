// Search problems put together by the names of nodes, and what every cover must hold to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/placement.h"
#include "partition/tiny_graph.h"
#include "search/search.h"

namespace collage {

// "A2a", "A2a@gpu", "@gpu/scratch"; "": plain
inline Encoding encoding(const std::string& text) {
  const std::string layout = text.substr(0, text.find('@'));
  VirtualDevice device;
  if (layout.size() < text.size()) {
    const std::string place = text.substr(layout.size() + 1);
    device.device = place.substr(0, place.find('/'));
    if (device.device.size() < place.size())
      device.memory_scope = place.substr(device.device.size() + 1);
  }
  return {DType::kFloat32, layout.empty() ? Layout() : *Layout::parse(layout), device};
}

// on_device, for texts with on_gpu and for_gpu.
inline void register_placements() {
  if (find_op("on_device") == nullptr) register_placement_ops();
}

// A problem being put together: candidates by the names of their nodes.
class Fixture {
 public:
  explicit Fixture(const std::string& text) : g(text) {
    problem.graph = &g.graph();
    problem.conversion_cost = [](const TensorType&, const Encoding&, const Encoding&) {
      return 1.0;
    };
  }
  // Encodings by text, one each.
  void add(const std::string& target, const IndexSet& inside, double seconds,
           std::vector<std::string> inputs = {}, std::vector<std::string> outputs = {}) {
    SubGraph sub_graph = SubGraph::of(g.graph(), inside);
    size_t leaves = 0;
    sub_graph.exit().for_each(
        [&](PostDfsIndex i) { leaves += g.graph().node(i).expr->type().leaves().size(); });
    inputs.resize(sub_graph.input().size());
    outputs.resize(leaves);
    Variant variant{"v", {}, {}};
    for (const std::string& tag : inputs) variant.inputs.push_back(encoding(tag));
    for (const std::string& tag : outputs) variant.outputs.push_back(encoding(tag));
    for (CandidateCosts& known : problem.candidates)
      if (known.candidate->sub_graph.inside() == inside &&
          known.candidate->spec->target.to_string() == target) {
        known.variants.push_back({variant, seconds});
        return;
      }
    auto spec = std::make_shared<PartitionSpec>(
        PartitionSpec{target, nullptr, Target::parse(target).value()});
    candidates.push_back({"test", std::move(sub_graph), spec});
    problem.candidates.push_back({&candidates.back(), {{variant, seconds}}});
  }
  void add(const std::string& target, const std::vector<std::string>& inside, double seconds,
           std::vector<std::string> inputs = {}, std::vector<std::string> outputs = {}) {
    add(target, g.set(inside), seconds, std::move(inputs), std::move(outputs));
  }
  // "target: a b | target: c", in order.
  std::string text(const Cover& cover) const {
    std::string result;
    for (size_t k = 0; k < cover.kernels.size(); ++k) {
      const CandidatePartition& candidate =
          *problem.candidates[cover.kernels[k].candidate].candidate;
      result += (k ? " | " : "") + candidate.spec->target.to_string() + ": " +
                g.names(candidate.sub_graph.inside());
    }
    for (const ChosenConversion& conversion : cover.conversions)
      result += " | " + g.names(IndexSet({conversion.tensor.node})) + " " +
                place_text(conversion.from) + ">" + place_text(conversion.to) + "@" +
                std::to_string(conversion.before);
    return result;
  }

  static std::string place_text(const Encoding& encoding) {
    return encoding.layout.to_string() +
           (is_host_memory(encoding.device) ? "" : " on " + device_text(encoding.device));
  }

  size_t operators() const {
    size_t count = 0;
    for (const DataflowGraph::Node& node : g.graph().nodes())
      count += node_role(node.expr) == NodeRole::kKernel;
    return count;
  }

  TinyGraph g;
  std::deque<CandidatePartition> candidates;
  SearchProblem problem;
};

// What a cover says it does must be possible and cost what it says.
inline void check_cover(const Fixture& f, const Cover& cover, bool costs_what_it_says = true) {
  double seconds = 0;
  std::set<std::pair<TensorRef, Encoding>> exist;
  const DataflowGraph& graph = f.g.graph();
  for (const DataflowGraph::Node& node : graph.nodes())
    if (node_role(node.expr) == NodeRole::kVariable) exist.insert({{node.index, 0}, encoding("")});
  auto exists = [&](TensorRef tensor, const Encoding& wanted) {
    if (exist.count({tensor, wanted})) return true;
    if (!wanted.layout.is_plain()) return false;
    // Row-major memory of what it is a view of, or of a view of it.
    auto root = [&](TensorRef t) {
      while (node_role(graph, t.node) == NodeRole::kView)
        t = tensor_of(graph, graph.node(t.node).inputs[0]);
      return t;
    };
    return std::any_of(exist.begin(), exist.end(), [&](const auto& item) {
      return item.second == wanted && root(item.first) == root(tensor);
    });
  };
  size_t next = 0;
  for (size_t k = 0; k <= cover.kernels.size(); ++k) {
    for (; next < cover.conversions.size() && cover.conversions[next].before == k; ++next) {
      const ChosenConversion& conversion = cover.conversions[next];
      ASSERT_TRUE(exists(conversion.tensor, conversion.from));
      exist.insert({conversion.tensor, conversion.to});
      seconds += conversion.seconds + f.problem.launch_penalty;
    }
    if (k == cover.kernels.size()) break;
    const CandidateCosts& costs = f.problem.candidates[cover.kernels[k].candidate];
    const VariantCost& variant = costs.variants[cover.kernels[k].variant];
    seconds += variant.seconds + f.problem.launch_penalty;
    size_t at = 0;
    costs.candidate->sub_graph.input().for_each([&](PostDfsIndex i) {
      EXPECT_TRUE(exists(tensor_of(graph, i), variant.variant.inputs[at++]));
    });
    at = 0;
    costs.candidate->sub_graph.exit().for_each([&](PostDfsIndex i) {
      for (size_t leaf = 0; leaf < graph.node(i).expr->type().leaves().size(); ++leaf)
        exist.insert(
            {graph.node(i).expr->type().is_tensor() ? tensor_of(graph, i) : TensorRef{i, leaf},
             variant.variant.outputs[at++]});
    });
  }
  EXPECT_EQ(next, cover.conversions.size());
  if (costs_what_it_says) {
    EXPECT_NEAR(seconds, cover.seconds, 1e-9);
  }
}

}  // namespace collage
