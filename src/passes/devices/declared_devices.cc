#include "passes/devices/declared_devices.h"

#include <algorithm>

#include "base/printable.h"

namespace collage {

DeviceConstraint PlannedDevice::constraint() const {
  DeviceConstraint result = DeviceConstraint::exactly(device);
  if (device.memory_scope.empty()) result.memory_scope.reset();
  if (!target.empty()) result.target = target;
  return result;
}

Result<VirtualDevice> parse_device(std::string_view text) {
  const DeviceConstraint device = TRY(DeviceConstraint::parse(text));
  if (!device.device || device.memory_scope || device.target)
    return usage_error("'{}' cannot be declared: expected KIND[:NUMBER]", device.to_string());
  return VirtualDevice{*device.device, device.id.value_or(0), ""};
}

Result<DeclaredDevices> DeclaredDevices::parse(std::string_view text) {
  DeclaredDevices result;
  for (std::string_view entry : list_entries(text)) {
    std::string_view name;
    if (const size_t equals = entry.find('='); equals != std::string_view::npos) {
      name = entry.substr(0, equals);
      entry = entry.substr(equals + 1);
    }
    const size_t at = entry.find('@');
    const VirtualDevice device = TRY(parse_device(entry.substr(0, at)));
    DeclaredDevice declared{std::string(name), device.device, device.id};
    if (at != std::string_view::npos) {
      if (!is_host_memory(device) || device.id == 0)
        return usage_error("'{}': only CPU devices beside cpu:0 have cores of their own",
                           printable(std::string(entry)));
      declared.cores = TRY(Cores::parse(entry.substr(at + 1)));
    }
    if (declared.name.empty()) declared.name = device_text(device);
    for (const DeclaredDevice& other : result.list_)
      if (other.name == declared.name || (other.kind == declared.kind && other.id == declared.id))
        return usage_error("device '{}' is declared twice", declared.name);
    result.list_.push_back(std::move(declared));
  }
  if (result.list_.empty()) return usage_error("no device is declared");
  return result;
}

const DeclaredDevice* DeclaredDevices::by_name(std::string_view name) const {
  for (const DeclaredDevice& declared : list_)
    if (declared.name == name) return &declared;
  return nullptr;
}

DeviceConstraint DeclaredDevices::with_number(DeviceConstraint constraint) const {
  if (constraint.device && !constraint.id)
    if (const DeclaredDevice* declared = by_name(*constraint.device)) {
      constraint.device = declared->kind;
      constraint.id = declared->id;
    }
  if (constraint.target) constraint.target = with_numbers(*constraint.target);
  return constraint;
}

Result<VirtualDevice> DeclaredDevices::find(std::string_view text) const {
  if (const DeclaredDevice* declared = by_name(text))
    return VirtualDevice{declared->kind, declared->id, ""};
  return parse_device(text);
}

std::string DeclaredDevices::with_numbers(std::string_view target) const {
  constexpr std::string_view kOption = " -device=";
  const size_t option = target.find(kOption);
  if (option == std::string_view::npos) return std::string(target);
  const size_t begin = option + kOption.size();
  const size_t end = std::min(target.find(' ', begin), target.size());
  const DeclaredDevice* declared = by_name(target.substr(begin, end - begin));
  if (declared == nullptr) return std::string(target);
  return fmt::format("{}{}:{}{}", target.substr(0, begin), declared->kind, declared->id,
                     target.substr(end));
}

PlannedDevice DeclaredDevices::fallback() const {
  return {VirtualDevice{list_.front().kind, list_.front().id, ""}, ""};
}

Result<PlannedDevice> DeclaredDevices::resolve(const DeviceConstraint& wanted) const {
  for (const DeclaredDevice& declared : list_) {
    const bool by_name = wanted.device == declared.name && !wanted.id;
    const bool by_kind = (!wanted.device || wanted.device == declared.kind) &&
                         (!wanted.id || wanted.id == declared.id);
    if (by_name || by_kind)
      return PlannedDevice{
          VirtualDevice{declared.kind, declared.id, wanted.memory_scope.value_or("")},
          wanted.target.value_or("")};
  }
  return error(ErrorCode::kUnavailable, "no device '{}' is declared: there are {}",
               wanted.to_string(), to_string());
}

std::string DeclaredDevices::to_string() const {
  std::string text;
  for (const DeclaredDevice& declared : list_) {
    const std::string device = fmt::format("{}:{}", declared.kind, declared.id);
    text += (text.empty() ? "" : ", ") +
            (declared.name == device ? device : declared.name + "=" + device);
    if (!declared.cores.empty()) text += "@" + declared.cores.to_string();
  }
  return text;
}

}  // namespace collage
