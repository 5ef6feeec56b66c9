// Selects the targets of a compilation: those asked for, or all that this machine offers, each with
// the rule that finds its candidates.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ir/module.h"
#include "partition/config.h"
#include "partition/stated_targets.h"
#include "passes/devices/declared_devices.h"

namespace collage {

// A user's constraints on targets: "native", "native:nn.conv2d"; "layer3.*=onednn", "layer3.*=mylib
// -device=gpu:1", "layer3.*=gpu:1".
struct TargetConstraints {
  struct Exclusion {
    TargetsNamed target;
    std::string op;  // empty: the whole target
  };
  struct Pin {
    std::string origin;  // a regular expression
    TargetsNamed target;
    std::string text;  // as given
  };
  std::vector<Exclusion> exclusions;
  std::vector<Pin> pins;

  // Backends are this build's; `others`: targets of a configuration, which need none.
  static Result<TargetConstraints> parse(const std::vector<std::string>& exclude,
                                         const std::vector<std::string>& pin,
                                         const DeclaredDevices& devices = {},
                                         std::span<const PartitionSpecPtr> others = {});
  bool excludes(const Target& target) const;  // altogether
  // States them in every function that is no kernel (partition/stated_targets.h).
  Module annotated(Module module) const;
  // Fails when a pin names a target that is not among these.
  Status check_pins(std::span<const PartitionSpecPtr> specs) const;
};

// Returns specs in order of backend priority, the host always last. kUsage: an unknown name;
// kUnavailable: one that is missing here. With declared devices all targets must be on these:
// kUsage for one that is not, kUnavailable for a device without a backend.
Result<std::vector<PartitionSpecPtr>> select_targets(const std::vector<std::string>& requested,
                                                     const TargetConstraints& constraints,
                                                     const DeclaredDevices& declared = {});
// Parses "cpu:0, gpu:0, big=gpu:1" of --devices; none for an empty text.
Result<DeclaredDevices> parse_devices_flag(const std::string& text);
// Returns the specs of a configuration and the host: each target's backend is its compiler, or else
// has its name; a target without a rule has its backend's. kUsage: no such backend; mock costs; an
// undeclared device, if any is declared.
Result<std::vector<PartitionSpecPtr>> configured_targets(const PartitionConfig& config,
                                                         const TargetConstraints& constraints,
                                                         const DeclaredDevices& declared = {});

}  // namespace collage
