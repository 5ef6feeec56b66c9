#include "ir/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/printable.h"

namespace collage {

namespace {

// "gpu" or "gpu:1".
Status read_device(const std::string& value, VirtualDevice& device) {
  const size_t colon = value.find(':');
  device.device = value.substr(0, colon);
  device.id = 0;
  const bool has_id = colon != std::string::npos;
  const char* const end = value.data() + value.size();
  const char* const number = has_id ? value.data() + colon + 1 : end;
  const auto [stop, error] = std::from_chars(number, end, device.id);
  if (device.device.empty() || stop != end || (has_id && error != std::errc()) || device.id < 0)
    return usage_error("'{}' is no device: expected NAME or NAME:NUMBER", value);
  return {};
}

}  // namespace

Result<Target> Target::parse(std::string_view text) {
  std::istringstream words{std::string(text)};
  Target target;
  if (!(words >> target.kind)) return usage_error("empty target");
  // Its text is a part of keys and messages.
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }))
    return usage_error("target '{}': only printable ASCII", printable(text));
  for (std::string word; words >> word;) {
    if (word.starts_with("-rules=")) {
      std::string rest;
      std::getline(words, rest);
      word += rest;
    }
    size_t equals = word.find('=');
    if (word.size() < 2 || word[0] != '-' || equals == std::string::npos)
      return usage_error("target '{}': expected -option=value, found '{}'", text, word);
    std::string name = word.substr(1, equals - 1), value = word.substr(equals + 1);
    if (name == "device") {
      TRY(read_device(value, target.device).with_context(fmt::format("target '{}'", text)));
    } else if (name == "memory_scope") {
      target.device.memory_scope = value;
    } else {
      target.options[name] = value;
    }
  }
  return target;
}

std::string Target::to_string() const {
  std::string text = kind;
  if (device.device != "cpu" || device.id != 0) text += " -device=" + device.device;
  if (device.id != 0) text += ":" + std::to_string(device.id);
  if (!device.memory_scope.empty()) text += " -memory_scope=" + device.memory_scope;
  for (const auto& [name, value] : options) text += " -" + name + "=" + value;
  return text;
}

Cores Target::cores() const {
  const auto option = options.find("cores");
  if (option == options.end()) return {};
  Result<Cores> cores = Cores::parse(option->second);
  return cores ? *std::move(cores) : Cores();
}

Result<TargetName> TargetName::parse(std::string_view text) {
  TargetName name;
  name.stated_ = TRY(Target::parse(text));
  name.device_ = text.find(" -device=") != std::string_view::npos;
  name.memory_scope_ = !name.stated_.device.memory_scope.empty();
  return name;
}

std::optional<TargetName> TargetName::join(const TargetName& a, const TargetName& b) {
  TargetName both = a;
  for (const auto& [name, value] : b.stated_.options)
    if (both.stated_.options.emplace(name, value).first->second != value) return std::nullopt;
  VirtualDevice &device = both.stated_.device, other = b.stated_.device;
  if (b.device_) {
    if (a.device_ && (device.device != other.device || device.id != other.id)) return std::nullopt;
    device.device = other.device;
    device.id = other.id;
  }
  if (b.memory_scope_) {
    if (a.memory_scope_ && device.memory_scope != other.memory_scope) return std::nullopt;
    device.memory_scope = other.memory_scope;
  }
  both.device_ = a.device_ || b.device_;
  both.memory_scope_ = a.memory_scope_ || b.memory_scope_;
  return a.kind() == b.kind() ? std::optional(both) : std::nullopt;
}

bool TargetName::means(const Target& target) const {
  const auto is_so = [&](const auto& option) {
    const auto found = target.options.find(option.first);
    return found != target.options.end() && found->second == option.second;
  };
  const VirtualDevice& device = stated_.device;
  return target.kind == stated_.kind &&
         std::all_of(stated_.options.begin(), stated_.options.end(), is_so) &&
         (!device_ || (target.device.device == device.device && target.device.id == device.id)) &&
         (!memory_scope_ || target.device.memory_scope == device.memory_scope);
}

}  // namespace collage
