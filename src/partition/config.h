// A user's configuration of partitioning (`--config`): targets with their rules, incompatible
// targets, and mock costs in place of measurements.
//
//   {"targets": [{"name": "hook", "compiler": "hook",
//                 "rule": "combine(composite('relu', is_op('nn.relu')(*)), joins: any)"},
//                {"name": "llvm", "rule": "combine(is_op_up_to('anchor'), max_depth: 8)"}],
//    "mock_costs": {"per_op": {"hook": 1, "llvm": 2}, "fusion_benefit": 0.9, "max_estimates": 0}}
//
// docs/partitioning.md describes every key. Errors (kUsage) name the file and the place: line and
// column of a syntax error, the JSON pointer of a bad value, the column in a rule.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partition/gather.h"

namespace collage {

// The k-th operator call of a kernel (from 0) costs per_op × fusion_benefit^k; nothing else costs
// anything.
struct MockCostTable {
  std::map<std::string, double> per_op;  // by target
  double fusion_benefit = 1;
  size_t max_estimates = 0;  // distinct kernels (function × target) that may be asked for; 0: any
};

struct PartitionConfig {
  std::filesystem::path file;
  // In order of preference. The rule is null for a target without one, which has its backend's, and
  // for one that uses own() (rule_text).
  std::vector<PartitionSpecPtr> specs;
  std::vector<std::optional<bool>> merges;  // each target's "merge", where it was given
  std::vector<std::pair<std::string, std::string>> incompatible;  // targets by name
  std::optional<MockCostTable> mock_costs;
  double memory_weight = 0;  // seconds that a megabyte which a program keeps counts as

  Status error_at(const std::string& pointer, const std::string& message) const;
};

// Operators must be registered.
Result<PartitionConfig> read_config(const std::filesystem::path& file);
// Parses text; `file` is for messages.
Result<PartitionConfig> parse_config(std::string_view text, const std::filesystem::path& file);

}  // namespace collage
