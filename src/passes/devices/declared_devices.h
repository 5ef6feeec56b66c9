// The devices that a program may use, in the order of preference, each under a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/device_constraint.h"
#include "ir/target.h"

namespace collage {

// "gpu:1"; "gpu" is "gpu:0". kUsage for what states more, or less.
Result<VirtualDevice> parse_device(std::string_view text);

struct DeclaredDevice {
  std::string name;  // "gpu:1" where it was given no other
  std::string kind;
  int id = 0;
};

// A virtual device with nothing left open but, maybe, the target: the cheapest that fits is chosen
// by cost.
struct PlannedDevice {
  VirtualDevice device;
  std::string target;  // its text; empty: any
  bool operator==(const PlannedDevice&) const = default;
  DeviceConstraint constraint() const;
};

class DeclaredDevices {
 public:
  DeclaredDevices() = default;  // none: any device may be used
  // "cpu:0, gpu:0, big=cpu:1". kUsage for a name or device that stands twice, and for none.
  static Result<DeclaredDevices> parse(std::string_view text);
  // Targets that constraints may name; each must run on a declared device.
  Status set_targets(std::vector<Target> targets);

  const std::vector<DeclaredDevice>& list() const { return list_; }
  bool declares(std::string_view name) const { return by_name(name) != nullptr; }
  // "big" by its declaration, or "gpu:1", declared or not. kUsage for what is neither.
  Result<VirtualDevice> find(std::string_view text) const;
  // What is stated by a declared name, by number.
  DeviceConstraint with_number(DeviceConstraint constraint) const;
  // A target's text, with -device=gpu:1 for what it states by name.
  std::string with_numbers(std::string_view target) const;
  // Of what no constraint reaches: the first one's ordinary memory.
  PlannedDevice fallback() const;
  // The first declared device that fits; the target, where one is named, decides on what is open.
  // kUnavailable for a device that is not declared or a target that is not among those set.
  Result<PlannedDevice> resolve(const DeviceConstraint& constraint) const;
  std::string to_string() const;

 private:
  const DeclaredDevice* by_name(std::string_view name) const;  // null: none

  std::vector<DeclaredDevice> list_;
  std::vector<Target> targets_;
};

}  // namespace collage
