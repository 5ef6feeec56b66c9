#include "partition/dependence.h"

#include <unordered_set>

namespace collage {

bool waits_for_itself(const DataflowGraph& graph, const SubGraph& kernel,
                      const std::vector<const SubGraph*>& owner) {
  IndexSet seen;
  std::unordered_set<const SubGraph*> entered;
  std::vector<PostDfsIndex> work = kernel.output().elements();
  while (!work.empty()) {
    PostDfsIndex at = work.back();
    work.pop_back();
    if (kernel.inside().contains(at)) return true;
    if (seen.contains(at)) continue;
    seen.insert(at);
    if (owner[at] == nullptr) {
      for (PostDfsIndex next : graph.node(at).outputs) work.push_back(next);
    } else if (entered.insert(owner[at]).second) {
      owner[at]->output().for_each([&](PostDfsIndex i) { work.push_back(i); });
    }
  }
  return false;
}

}  // namespace collage
