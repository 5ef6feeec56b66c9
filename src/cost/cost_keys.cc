#include "cost/cost_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "backend/fingerprint.h"
#include "base/hash.h"

namespace collage {

namespace {

// Lines that say which build of ours found something.
std::string judged_by() { return "judged by " + judges_fingerprint(); }
std::string made_by() { return "made and judged by " + programs_fingerprint(); }

std::string backend_versions() {  // a line each
  std::string lines;
  for (Backend* backend : all_backends())
    lines += "\n" + backend->name() + " " + backend->traits().version;
  return lines;
}

std::string version_of(const std::string& backend) {
  const Backend* known = find_backend(backend);
  return known != nullptr ? known->traits().version : "";
}

}  // namespace

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string name = "unknown processor", flags;
  for (std::string line;
       std::getline(in, line) && (name == "unknown processor" || flags.empty());) {
    size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) name = line.substr(colon + 2);
    if (line.starts_with("flags")) flags = line.substr(colon + 2);
  }
  return name + " " + sha256_hex(flags).substr(0, 8);
}

CostKeys::CostKeys(int threads, CacheState cache, const std::string& processor)
    : processor_(fmt::format("{} threads={}", processor, threads)),
      machine_(fmt::format("{} {}\n{}", processor_, cache_state_name(cache), judged_by())) {}

std::string CostKeys::program_context() const {
  return fmt::format("{}\n{}{}", processor_, made_by(), backend_versions());
}

std::string CostKeys::fingerprint() const { return sha256_hex(program_context()).substr(0, 16); }

std::string CostKeys::conversion_context(const std::set<std::string>& converters) const {
  return fmt::format("{}{}\nby {}", machine_, backend_versions(), fmt::join(converters, ", "));
}

std::string CostKeys::function_context(const Target& target, RoundingLimit rounding) const {
  return fmt::format("{}\n{}\n{}{}", target.to_string(), version_of(target.kind), machine_,
                     rounding == RoundingLimit::kAny ? "\nlowered" : "");
}

std::string CostKeys::quarantine_context(const std::string& target) {
  return fmt::format("{}\n{}\n{}\n{}", target, version_of(target.substr(0, target.find(' '))),
                     processor_name(), judged_by());
}

std::string library_version(const std::string& backend) {
  std::string version = version_of(backend);
  const std::string sources = source_fingerprint(backend);
  if (const size_t at = version.find(sources); at != std::string::npos && !sources.empty())
    version.erase(at, sources.size());
  return version;
}

bool is_of_library(std::string_view version, const std::string& backend) {
  const std::string full = version_of(backend), sources = source_fingerprint(backend);
  const size_t at = full.find(sources);
  if (at == std::string::npos) return version == full;
  return version.size() == full.size() && version.starts_with(full.substr(0, at)) &&
         version.ends_with(full.substr(at + sources.size()));
}

bool is_judged_here(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line == judged_by() || line == made_by();
  });
}

std::string CostKeys::conversion_text(const TensorType& type, const Encoding& from,
                                      const Encoding& to) {
  return fmt::format("{} {} -> {}", type.to_string(), from.to_string(), to.to_string());
}

}  // namespace collage
