#include "cost/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/printable.h"
#include "base/processor.h"
#include "cost/cost_keys.h"
#include "cost/row_values.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr const char* kMachineRows = "machine";
constexpr const char* kKind = "kind ";  // what contexts of such rows begin with
constexpr int64_t kMostBytes = int64_t{1} << 40;

Result<std::vector<std::string>> words_of(const JsonFields& fields, const char* name) {
  std::vector<std::string> words;
  for (const json& word : *TRY(fields.array(name))) {
    if (!word.is_string()) return internal_error("'{}' holds what is no text", name);
    words.push_back(word.get<std::string>());
  }
  return words;
}

}  // namespace

std::string Machine::kind() const {
  return fmt::format("{}{} {}, caches of {} and {}, threads={}", kKind, architecture,
                     fmt::join(features, " "), first_cache, private_cache, threads);
}

// All that says of what kind it is.
static Machine of_kind_here(int threads) {
  Machine machine;
  machine.threads = threads;
  machine.architecture = kArchitecture;
  machine.features = processor_features();
  machine.first_cache = first_cache_bytes();
  machine.private_cache = private_cache_bytes();
  return machine;
}

std::string kind_here(int threads) { return of_kind_here(threads).kind(); }

Machine this_machine(int threads) {
  Machine machine = of_kind_here(threads);
  machine.fingerprint = CostKeys(threads, CacheState::kWarm).fingerprint();
  machine.processor = processor_name();
  for (const Backend* backend : all_backends())
    if (backend->traits().by_default && !backend->traits().is_host && backend->available().ok())
      machine.targets.push_back(backend->name());
  return machine;
}

json to_json(const Machine& machine) {
  json value = {{"fingerprint", machine.fingerprint},
                {"processor", machine.processor},
                {"threads", machine.threads},
                {"architecture", machine.architecture},
                {"features", machine.features},
                {"first_cache", machine.first_cache},
                {"private_cache", machine.private_cache},
                {"targets", machine.targets}};
  if (machine.speed.float32 > 0) value["speed"] = to_json(machine.speed);
  return value;
}

Result<Machine> machine_from_json(const json& value) {
  const JsonFields fields(value);
  Machine machine;
  machine.fingerprint = TRY(fields.text("fingerprint"));
  machine.processor = TRY(fields.text("processor"));
  machine.threads = static_cast<int>(TRY(fields.integer("threads", 1, 1024)));
  machine.architecture = TRY(fields.text("architecture"));
  machine.features = TRY(words_of(fields, "features"));
  machine.targets = TRY(words_of(fields, "targets"));
  machine.first_cache = static_cast<size_t>(TRY(fields.integer("first_cache", 0, kMostBytes)));
  machine.private_cache = static_cast<size_t>(TRY(fields.integer("private_cache", 0, kMostBytes)));
  if (fields.has("speed")) machine.speed = TRY(speed_from_json(*TRY(fields.object("speed"))));
  return machine;
}

bool is_of_machine(const CostRow& row) {
  return row.kind == kMachineRows && row.context.starts_with(kKind);
}

void introduce(CostDatabase& database, const Machine& machine) {
  const std::string kind = machine.kind(), id = CostDatabase::key_of(machine.fingerprint, kind);
  const std::optional<Machine> known =
      find_value(database, kMachineRows, id, machine_from_json, kind);
  if (known && known->speed.float32 >= machine.speed.float32) return;
  database.put(kMachineRows, id, machine.fingerprint, json_text(to_json(machine)), kind);
}

std::vector<Machine> machines_of(CostDatabase& database, const std::optional<std::string>& kind) {
  std::vector<Machine> machines;
  for (const std::string& text : database.values_of_anybody(kMachineRows, kind)) {
    const json value = parse_json(text);
    if (!JsonFields(value).has("fingerprint")) continue;
    Result<Machine> machine = machine_from_json(value);
    if (machine && (!kind || machine->kind() == *kind)) machines.push_back(std::move(*machine));
  }
  return machines;
}

Result<Machine> find_machine(CostDatabase& database, const std::string& fingerprint) {
  std::vector<Machine> found;
  std::string others;
  for (Machine& machine : machines_of(database)) {
    if (!fingerprint.empty() && machine.fingerprint.starts_with(fingerprint)) {
      found.push_back(std::move(machine));
    } else {
      others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", printable(machine.fingerprint),
                            printable(machine.processor));
    }
  }
  if (found.size() > 1) return usage_error("'{}' begins several fingerprints", fingerprint);
  if (found.empty())
    return usage_error("no machine of the fingerprint '{}' measured for this database; there is {}",
                       fingerprint, others.empty() ? "none" : others);
  const Machine& machine = found[0];
  if (machine.architecture != kArchitecture)
    return error(ErrorCode::kUnavailable,
                 "{} is of the architecture {}: kernels are compiled for {} alone",
                 machine.fingerprint, printable(machine.architecture), kArchitecture);
  if (CostKeys(machine.threads, CacheState::kWarm, machine.processor).fingerprint() !=
      machine.fingerprint)
    return error(ErrorCode::kUnavailable,
                 "{} was measured by another build of Collage, or with other backends; start a "
                 "worker of this build there",
                 machine.fingerprint);
  return std::move(found[0]);
}

}  // namespace collage
