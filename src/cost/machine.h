// Machines that costs are of. A database knows each that measured for it by a row: its fingerprint,
// which names the processor, the threads, and the build of all that measures and judges; and what
// using its costs elsewhere needs.
//
//   kind        instruction set, caches of a core, threads: costs of machines of one kind differ by
//               their speed, so that what one measured is an estimate for the others, scaled
//   speed       by a probe (measure/machine_speed.h), by which it is scaled
//   targets     what a plan of that machine may use, to compile for it elsewhere
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cost/database.h"
#include "measure/machine_speed.h"

namespace collage {

struct Machine {
  std::string fingerprint;  // CostKeys::fingerprint
  std::string processor;    // processor_name
  int threads = 1;
  std::string architecture;           // kArchitecture
  std::vector<std::string> features;  // processor_features
  size_t first_cache = 0, private_cache = 0;
  std::vector<std::string> targets;  // those in use by default, but for the host
  MachineSpeed speed;                // 0: not probed
  double seconds_factor = 1;         // what a second of its costs is expected to be here

  std::string kind() const;
};

Machine this_machine(int threads);
std::string kind_here(int threads);  // its kind

nlohmann::json to_json(const Machine& machine);
Result<Machine> machine_from_json(const nlohmann::json& json);

// Whether a row of the kind "machine" is one of these: its context is the machine's kind.
bool is_of_machine(const CostRow& row);
// Keeps the machine's row where there is none, or one of a lower speed.
void introduce(CostDatabase& database, const Machine& machine);
// Those of one kind, or all.
std::vector<Machine> machines_of(CostDatabase& database,
                                 const std::optional<std::string>& kind = std::nullopt);
// kUsage: there is none of that fingerprint, or of its first digits; which there are. kUnavailable:
// another build measured there, or for another architecture.
Result<Machine> find_machine(CostDatabase& database, const std::string& fingerprint);

}  // namespace collage
