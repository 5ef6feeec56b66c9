// A constraint on where a value lies and what computes it: the kind and number of a device, a
// memory scope on it, a target, each stated or open (the virtual devices of TVM's RFC 0038).
//
//   gpu    gpu:1    gpu:1/texture    /texture    gpu:0@native -vector-width=8    ?
//
// "/global" states a device's ordinary memory, and "?" nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/encoding.h"

namespace collage {

struct DeviceConstraint {
  std::optional<std::string> device;        // a kind, or the name of a declared device
  std::optional<int> id;                    // only with a device
  std::optional<std::string> memory_scope;  // "" is the ordinary memory
  std::optional<std::string> target;        // its text (ir/target.h)

  bool is_open() const { return !device && !memory_scope && !target; }
  bool operator==(const DeviceConstraint&) const = default;

  static Result<DeviceConstraint> parse(std::string_view text);
  std::string to_string() const;
  static DeviceConstraint exactly(const VirtualDevice& device);
};

// Returns the constraint that holds both; none if they contradict each other.
std::optional<DeviceConstraint> join(const DeviceConstraint& a, const DeviceConstraint& b);

// Adds the device and memory scope that the target's text states. kBadModel: it states others.
Result<DeviceConstraint> refined(const DeviceConstraint& constraint);

// Splits "a, b, c" into its entries, without the spaces around them.
std::vector<std::string_view> list_entries(std::string_view text);

// Parses "gpu:0, ?, cpu:0", the form of the attributes "param_devices" and "result_devices" of
// functions: one entry for each leaf of the parameters' or the result's type.
Result<std::vector<DeviceConstraint>> parse_device_list(std::string_view text);
std::string device_list_text(const std::vector<DeviceConstraint>& list);

}  // namespace collage
