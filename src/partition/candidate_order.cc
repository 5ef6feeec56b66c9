#include "partition/candidate_order.h"

#include <algorithm>
#include <utility>

namespace collage {

void sort_by_last_node(std::vector<CandidatePartition>& candidates) {
  std::vector<std::pair<size_t, size_t>> order;  // node and position
  for (size_t c = 0; c < candidates.size(); ++c)
    order.emplace_back(candidates[c].sub_graph.inside().last(), c);
  std::sort(order.begin(), order.end());
  std::vector<CandidatePartition> sorted;
  sorted.reserve(candidates.size());
  for (const auto& [node, position] : order) sorted.push_back(std::move(candidates[position]));
  candidates = std::move(sorted);
}

}  // namespace collage
