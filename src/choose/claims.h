// What each target could compute of a graph, by what its backend offers for its candidates: nothing
// is compiled or timed. A backend may still refuse when it compiles, and offers may be too slow to
// be chosen, so that a node which nobody claims is certain to run on the host, and a claimed one
// may all the same.
#pragma once

#include <string>
#include <vector>

#include "choose/candidates.h"

namespace collage {

struct Claim {
  std::string target;
  size_t candidates = 0;            // that its rule found
  std::vector<PostDfsIndex> nodes;  // kernel nodes in candidates that its backend has variants for
};

struct NotClaimed {
  PostDfsIndex node;
  std::string target, reason;
};

struct Claims {
  std::vector<PostDfsIndex> kernel_nodes;  // all that need a kernel, views and wires left out
  std::vector<Claim> targets;              // of all but the host
  std::vector<NotClaimed> refusals;        // by node, then in the order of targets
  std::vector<PostDfsIndex> on_host;       // that no target claims
};

Result<Claims> find_claims(const Candidates& candidates, const ProgramOptions& options);

}  // namespace collage
