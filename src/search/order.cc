#include "search/order.h"

#include <algorithm>
#include <queue>

namespace collage::search {

std::vector<uint32_t> narrow_order(const CompactProblem& compact) {
  size_t n = compact.nodes.size();
  std::vector<std::vector<uint32_t>> inputs(n + 1);  // the last one stands for all results
  std::vector<size_t> depth(n, 0);
  std::vector<bool> used(n, false);
  for (const Group& group : compact.groups)
    for (uint32_t reader : group.readers)
      if (group.root >= 0) {
        inputs[reader].push_back(static_cast<uint32_t>(group.root));
        used[static_cast<size_t>(group.root)] = true;
      }
  for (uint32_t i = 0; i < n; ++i) {  // numbers are a dataflow order already
    for (uint32_t input : inputs[i]) depth[i] = std::max(depth[i], depth[input] + 1);
    if (!used[i]) inputs[n].push_back(i);
  }
  for (std::vector<uint32_t>& list : inputs)
    std::stable_sort(list.begin(), list.end(),
                     [&](uint32_t a, uint32_t b) { return depth[a] > depth[b]; });
  std::vector<uint32_t> order, stack = {static_cast<uint32_t>(n)};
  std::vector<size_t> next(n + 1, 0);
  std::vector<bool> seen(n, false);
  while (!stack.empty()) {
    uint32_t at = stack.back();
    if (next[at] < inputs[at].size()) {
      uint32_t input = inputs[at][next[at]++];
      if (seen[input]) continue;
      seen[input] = true;
      stack.push_back(input);
    } else {
      stack.pop_back();
      if (at < n) order.push_back(at);
    }
  }
  return order;
}

std::vector<uint32_t> contracted_order(const CompactProblem& compact,
                                       const std::vector<uint32_t>& base,
                                       const std::vector<std::vector<uint32_t>>& regions) {
  size_t n = compact.nodes.size();
  std::vector<uint32_t> unit(n), rank(n);  // a unit is named by one of its nodes
  for (uint32_t i = 0; i < n; ++i) unit[i] = i, rank[base[i]] = i;
  for (const std::vector<uint32_t>& region : regions)
    for (uint32_t node : region) unit[node] = region[0];
  std::vector<std::vector<uint32_t>> members(n), users(n);
  std::vector<size_t> waiting(n, 0);
  for (uint32_t i = 0; i < n; ++i) members[unit[base[i]]].push_back(base[i]);
  for (const Group& group : compact.groups)
    for (uint32_t reader : group.readers) {
      if (group.root < 0) continue;
      uint32_t from = unit[static_cast<size_t>(group.root)], to = unit[reader];
      if (from == to) continue;
      users[from].push_back(to);
      ++waiting[to];
    }
  using Ready = std::pair<uint32_t, uint32_t>;  // rank, unit
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (uint32_t u = 0; u < n; ++u)
    if (unit[u] == u && waiting[u] == 0) ready.push({rank[u], u});
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    uint32_t u = ready.top().second;
    ready.pop();
    order.insert(order.end(), members[u].begin(), members[u].end());
    for (uint32_t user : users[u])
      if (--waiting[user] == 0) ready.push({rank[user], user});
  }
  if (order.size() != n) order.clear();
  return order;
}

}  // namespace collage::search
