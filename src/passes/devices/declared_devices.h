// The devices that a program may use, in order of preference, each with a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/device_constraint.h"
#include "ir/target.h"

namespace collage {

// Parses "gpu:1"; "gpu" is "gpu:0". kUsage: the text states more, or less.
Result<VirtualDevice> parse_device(std::string_view text);

struct DeclaredDevice {
  std::string name;  // "gpu:1" where it was given no other
  std::string kind;
  int id = 0;
  Cores cores = {};  // of a CPU device beside cpu:0, where they are stated
};

// A virtual device with at most the target left open: costs choose the cheapest one that
// fits.
struct PlannedDevice {
  VirtualDevice device;
  std::string target;  // its text; empty: any
  bool operator==(const PlannedDevice&) const = default;
  DeviceConstraint constraint() const;
};

class DeclaredDevices {
 public:
  DeclaredDevices() = default;  // none: any device may be used
  // Parses "cpu:0, gpu:0, little=cpu:1@2-3". kUsage: a name or device occurs twice, there is none,
  // or a device has no cores.
  static Result<DeclaredDevices> parse(std::string_view text);

  const std::vector<DeclaredDevice>& list() const { return list_; }
  bool declares(std::string_view name) const { return by_name(name) != nullptr; }
  // Finds "big" by its declaration, or "gpu:1", declared or not. kUsage: it is neither.
  Result<VirtualDevice> find(std::string_view text) const;
  // Replaces a declared name by its device's number.
  DeviceConstraint with_number(DeviceConstraint constraint) const;
  // Returns a target's text, with -device=gpu:1 in place of a declared name.
  std::string with_numbers(std::string_view target) const;
  // The device of values without constraints: the first one's ordinary memory.
  PlannedDevice fallback() const;
  // Returns the first declared device that fits. kUnavailable: a device is not declared.
  Result<PlannedDevice> resolve(const DeviceConstraint& wanted) const;
  std::string to_string() const;

 private:
  const DeclaredDevice* by_name(std::string_view name) const;  // null: none

  std::vector<DeclaredDevice> list_;
};

}  // namespace collage
