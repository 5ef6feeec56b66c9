#include "partition/stated_targets.h"

#include <algorithm>
#include <sstream>

#include "base/printable.h"
#include "base/regex.h"
#include "ir/op.h"
#include "partition/stated_kernels.h"

namespace collage {

namespace {

constexpr std::string_view kFor = " for ";

}  // namespace

Result<TargetsNamed> TargetsNamed::parse(const std::string& text, const DeclaredDevices& devices) {
  TargetsNamed named;
  const Result<VirtualDevice> device = devices.find(text);
  if (device && (devices.declares(text) || text.find(':') != std::string::npos)) {
    named.device_ = *device;
    named.text_ = device_text(*device);
  } else {
    named.text_ = devices.with_numbers(text);
    named.target_ = TRY(TargetName::parse(named.text_));
  }
  return named;
}

bool TargetsNamed::means(const Target& target) const {
  if (target_) return target_->means(target);
  return target.device.device == device_.device && target.device.id == device_.id;
}

void state_targets(const char* attribute, const TargetsNamed& targets, const std::string& of,
                   Attrs& attrs) {
  std::string text = text_attr(attrs, attribute);
  if (!text.empty()) text += '\n';
  text += targets.text();
  if (!of.empty()) text += kFor;
  for (char c : of) text += c == '\n' ? std::string("\\n") : std::string(1, c);
  attrs.set(attribute, std::move(text));
}

Attrs without_stated_targets(const Attrs& attrs) {
  Attrs rest;
  for (const auto& [name, value] : attrs.entries())
    if (name != kExclude && name != kPin) rest.set(name, value);
  return rest;
}

StatedTargets::StatedTargets(const DataflowGraph& graph) {
  for (const bool excludes : {true, false}) {
    const char* const attribute = excludes ? kExclude : kPin;
    std::istringstream entries(text_attr(graph.function()->attrs, attribute));
    for (std::string entry; std::getline(entries, entry);)
      if (const Status added = add(graph, excludes, entry); !added.ok())
        status_ = bad_model("attribute {}, '{}': {}", attribute, printable(entry), added.message());
  }
}

Status StatedTargets::add(const DataflowGraph& graph, bool excludes, const std::string& entry) {
  const size_t end = entry.find(kFor);
  const std::string of = end == std::string::npos ? "" : entry.substr(end + kFor.size());
  Statement statement{TRY(TargetsNamed::parse(entry.substr(0, end))), excludes, {}};
  const Regex origins = TRY(Regex::parse(excludes ? "" : of));
  for (const DataflowGraph::Node& node : graph.nodes()) {
    const auto* call = as<CallNode>(node.expr);
    if (call == nullptr) continue;
    const bool is_meant = excludes ? of.empty() || (call->op != nullptr && call->op->name == of)
                                   : origins.found_in(call->origin());
    if (is_meant) statement.nodes.insert(node.index);
  }
  statements_.push_back(std::move(statement));
  return {};
}

bool StatedTargets::allow(const Target& target, const IndexSet& nodes) const {
  return std::none_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    return statement.targets.means(target) == statement.excludes &&
           statement.nodes.intersects(nodes);
  });
}

}  // namespace collage
