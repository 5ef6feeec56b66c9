// Which targets a function keeps away from kernels with some of its calls, stated by attributes
// with an entry a line:
//
//   exclude="onednn for nn.softmax"  no kernel with a call of that operator is onednn's; without an
//                                    operator none is at all
//   pin="native for encoder.*"       kernels with a call whose origin has a match are native's
//
// --exclude and --pin state these (backend/targets/targets.h). They say who computes, not what, so
// canonical text has neither, and a partition that keeps to them (rewrite.h) states them no longer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/target.h"
#include "partition/dataflow_graph.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// Targets by a user's name: as TargetName, or all on one device, "gpu:1" or the name that it was
// declared with.
class TargetsNamed {
 public:
  static Result<TargetsNamed> parse(const std::string& text, const DeclaredDevices& devices = {});
  bool means(const Target& target) const;
  const std::string& text() const { return text_; }  // with numbers for names of devices
  // The backend's name; empty for a device.
  std::string kind() const { return target_ ? target_->kind() : ""; }

 private:
  std::string text_;
  std::optional<TargetName> target_;
  VirtualDevice device_;
};

inline constexpr char kExclude[] = "exclude", kPin[] = "pin";

// Adds an entry to one of these attributes; `of`: an operator or a regular expression.
void state_targets(const char* attribute, const TargetsNamed& targets, const std::string& of,
                   Attrs& attrs);
Attrs without_stated_targets(const Attrs& attrs);

class StatedTargets {
 public:
  explicit StatedTargets(const DataflowGraph& graph);
  // kBadModel: an entry cannot be read.
  const Status& status() const { return status_; }
  // Returns whether a kernel of these nodes may be the target's.
  bool allow(const Target& target, const IndexSet& nodes) const;

 private:
  Status add(const DataflowGraph& graph, bool excludes, const std::string& entry);

  struct Statement {
    TargetsNamed targets;
    bool excludes;   // these targets, else all others
    IndexSet nodes;  // from kernels with some of these
  };
  std::vector<Statement> statements_;
  Status status_;
};

}  // namespace collage
