#include "report/host_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend/backend.h"
#include "ops/control.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

bool is_host(const std::string& target) {
  const Backend* backend = find_backend(target.substr(0, target.find(' ')));
  return backend != nullptr && backend->traits().is_host;
}

// The nodes that some other target has a kernel for. Of the smallest kernels the host's may be
// among the fastest.
std::set<PostDfsIndex> held_by_others(const CompileReport& report) {
  std::set<PostDfsIndex> held;
  for (const ReportedCandidate& other : report.considered)
    if (!is_host(other.target) && !other.variant.empty() &&
        !std::holds_alternative<Invalid>(other.cost))
      held.insert(other.nodes.begin(), other.nodes.end());
  return held;
}

}  // namespace

HostShare host_share(const CompileReport& report) {
  HostShare result;
  const std::set<PostDfsIndex> held = held_by_others(report);
  double all = 0, on_host = 0;
  for (const ReportedPlan::Kernel& kernel : report.kernels) {
    all += kernel.flops;
    // What control flow and external modules run has plans of its own.
    const bool has_plans =
        kernel.ops.size() == 1 &&
        (is_control_op(kernel.ops[0].op) || kernel.ops[0].op == tensor_program::kExternalModOp);
    if (!is_host(kernel.target) || has_plans ||
        std::all_of(kernel.nodes.begin(), kernel.nodes.end(),
                    [&](PostDfsIndex node) { return held.contains(node); }))
      continue;
    result.host = kernel.target;
    on_host += kernel.flops;
    for (const ReportedPlan::Kernel::OpRef& op : kernel.ops) ++result.operators[op.op];
  }
  if (all > 0) result.share = on_host / all;
  result.alone = report.targets.size() == 1;
  return result;
}

std::string HostShare::operators_text() const {
  std::string text;
  for (const auto& [op, count] : operators)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", op,
                        count > 1 ? fmt::format(" ({})", count) : "");
  return text;
}

}  // namespace collage
