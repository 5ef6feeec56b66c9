// Which targets a compilation uses: those asked for, or all that this machine offers, each with the
// rule that finds its candidates.
#pragma once

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace collage {

// What the user forbids or demands of targets. "native", "native:nn.conv2d"; "layer3.*=onednn".
struct TargetConstraints {
  struct Exclusion {
    std::string backend, op;  // op empty: the whole backend
  };
  struct Pin {
    std::regex origin;
    std::string backend;
  };
  std::vector<Exclusion> exclusions;
  std::vector<Pin> pins;

  static Result<TargetConstraints> parse(const std::vector<std::string>& exclude,
                                         const std::vector<std::string>& pin);
  bool allows(const Target& target, const CallNode& call) const;
};

// Specs in order of backend priority. The host is always among them, last. kUsage: an unknown name;
// kUnavailable: one that is missing here.
Result<std::vector<std::shared_ptr<const PartitionSpec>>> select_targets(
    const std::vector<std::string>& requested, const TargetConstraints& constraints);

}  // namespace collage
