#include "choose/memory_limits.h"

#include <charconv>
#include <limits>
#include <set>

namespace collage {

namespace {

Result<size_t> parse_bytes(std::string_view text) {
  size_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M' || text.back() == 'G')) {
    unit = text.back() == 'K' ? 1'000 : text.back() == 'M' ? 1'000'000 : 1'000'000'000;
    text.remove_suffix(1);
  }
  size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      count > std::numeric_limits<size_t>::max() / unit)
    return usage_error("'{}' is no number of bytes: expected 500000, 500K, 500M or 5G", text);
  return count * unit;
}

bool same_device(const VirtualDevice& a, const VirtualDevice& b) {
  return a.device == b.device && a.id == b.id;
}

// On devices that `counts` accepts.
template <typename Counts>
size_t bytes_on(const Plan& plan, Counts&& counts) {
  size_t bytes = counts(VirtualDevice()) ? plan.arena_bytes : 0;
  for (const DeviceArena& arena : plan.device_arenas)
    if (counts(arena.device)) bytes += arena.bytes;
  std::set<const Kernel*> kernels;
  for (const Step& step : plan.steps)
    if (counts(memory_device(step.device)) && kernels.insert(step.kernel.get()).second)
      bytes += step.kernel->constant_bytes();
  return bytes;
}

}  // namespace

Result<std::vector<MemoryLimit>> parse_memory_limits(const std::vector<std::string>& texts,
                                                     const DeclaredDevices& devices) {
  std::vector<MemoryLimit> limits;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return usage_error("--memory {}: expected DEVICE=BYTES", text);
    VirtualDevice device =
        TRY(devices.find(text.substr(0, equals)).with_context("--memory " + text));
    if (is_host_memory(device)) device = {};
    limits.push_back({device,
                      TRY(parse_bytes(std::string_view(text).substr(equals + 1))
                              .with_context("--memory " + text)),
                      text});
  }
  return limits;
}

size_t kept_bytes(const Plan& plan) {
  return bytes_on(plan, [](const VirtualDevice&) { return true; });
}

Status check_memory(const Plan& plan, const std::vector<MemoryLimit>& limits) {
  for (const MemoryLimit& limit : limits)
    if (const size_t bytes = bytes_on(
            plan, [&](const VirtualDevice& device) { return same_device(device, limit.device); });
        bytes > limit.bytes)
      return error(ErrorCode::kUnavailable, "--memory {}: it keeps {} bytes on {}", limit.text,
                   bytes, device_text(limit.device));
  return {};
}

}  // namespace collage
