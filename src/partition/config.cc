#include "partition/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "partition/rule_text.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kMaxLimit = 1'000'000;

std::string list_of(std::initializer_list<std::string_view> names) {
  std::string text;
  for (std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Where in the text a syntax error is, and nlohmann's words for it without its prefix.
Status syntax_error(std::string_view text, const json::parse_error& e,
                    const std::filesystem::path& file) {
  size_t at = e.byte == 0 ? 0 : std::min(e.byte - 1, text.size());
  size_t line = 1, column = 1;
  for (size_t i = 0; i < at; ++i) {
    ++column;
    if (text[i] == '\n') ++line, column = 1;
  }
  std::string words = e.what();
  size_t from = words.find(": ");
  if (from != std::string::npos) words = words.substr(from + 2);
  if (size_t dash = words.find(" - "); dash != std::string::npos) words = words.substr(dash + 3);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return usage_error("{}: line {}, column {}: {}", file.string(), line, column, words);
}

class Reader {
 public:
  explicit Reader(PartitionConfig& config) : config_(config) {}

  Status run(const json& root) {
    TRY(object(root, "", {"targets", "incompatible", "memory_weight", "mock_costs"}));
    const json targets = TRY(member(root, "", "targets"));
    if (!targets.is_array() || targets.empty())
      return bad("/targets", "a list of at least one target", targets);
    for (size_t i = 0; i < targets.size(); ++i)
      TRY(target(targets[i], "/targets/" + std::to_string(i)));
    if (root.contains("incompatible")) TRY(incompatible(root["incompatible"], "/incompatible"));
    if (root.contains("memory_weight")) TRY(memory_weight(root["memory_weight"]));
    if (root.contains("mock_costs")) TRY(mock_costs(root["mock_costs"], "/mock_costs"));
    return {};
  }

 private:
  Status bad(const std::string& pointer, std::string_view expected, const json& found) const {
    return config_.error_at(pointer, fmt::format("expected {}, found {}", expected, shown(found)));
  }

  // An object with no keys but those.
  Status object(const json& value, const std::string& pointer,
                std::initializer_list<std::string_view> keys) const {
    if (!value.is_object()) return bad(pointer, "an object", value);
    for (const auto& [key, unused] : value.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        return config_.error_at(pointer + "/" + escaped(key),
                                "unknown key; there are " + list_of(keys));
    return {};
  }
  static std::string escaped(const std::string& key) {
    std::string text;
    for (char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return text;
  }

  Result<json> member(const json& value, const std::string& pointer, const char* key) const {
    if (!value.contains(key))
      return config_.error_at(pointer, fmt::format("the key \"{}\" is missing", key));
    return value[key];
  }

  Result<std::string> text(const json& value, const std::string& pointer) const {
    if (!value.is_string() || value.get<std::string>().empty())
      return bad(pointer, "a string that is not empty", value);
    return value.get<std::string>();
  }
  // A name that may stand in a symbol.
  Result<std::string> name(const json& value, const std::string& pointer) const {
    std::string found = TRY(text(value, pointer));
    for (char c : found)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.')
        return bad(pointer, "a name of letters, digits, '_', '-' and '.'", value);
    return found;
  }
  Result<bool> flag(const json& value, const std::string& pointer) const {
    if (!value.is_boolean()) return bad(pointer, "true or false", value);
    return value.get<bool>();
  }
  Result<size_t> count(const json& value, const std::string& pointer, size_t least) const {
    if (!value.is_number_integer() || value.get<double>() < static_cast<double>(least) ||
        value.get<double>() > static_cast<double>(kMaxLimit))
      return bad(pointer, fmt::format("a whole number from {} to {}", least, kMaxLimit), value);
    return value.get<size_t>();
  }

  Status target(const json& value, const std::string& pointer) {
    TRY(object(value, pointer, {"name", "compiler", "options", "device", "rule", "merge"}));
    PartitionSpec spec;
    spec.name = TRY(name(TRY(member(value, pointer, "name")), pointer + "/name"));
    for (const PartitionSpecPtr& other : config_.specs)
      if (other->name == spec.name)
        return config_.error_at(pointer + "/name",
                                fmt::format("there is another target '{}'", spec.name));
    spec.target.kind = spec.name;
    if (value.contains("compiler"))
      spec.compiler = TRY(name(value["compiler"], pointer + "/compiler"));
    if (value.contains("device"))
      spec.target.device.device = TRY(name(value["device"], pointer + "/device"));
    if (value.contains("options")) {
      const std::string options = pointer + "/options";
      if (!value["options"].is_object()) return bad(options, "an object", value["options"]);
      for (const auto& [option, given] : value["options"].items()) {
        const std::string at = options + "/" + escaped(option);
        spec.target.options[TRY(name(option, at))] = TRY(name(given, at));
      }
    }
    if (value.contains("rule")) TRY(rule(value["rule"], pointer + "/rule", spec));
    std::optional<bool> merges;
    if (value.contains("merge")) merges = TRY(flag(value["merge"], pointer + "/merge"));
    spec.merges = merges.value_or(spec.merges);
    config_.merges.push_back(merges);
    config_.specs.push_back(std::make_shared<const PartitionSpec>(std::move(spec)));
    return {};
  }

  // Targets whose rules are the same share its candidates.
  Status rule(const json& value, const std::string& pointer, PartitionSpec& spec) {
    Result<RuleText> read =
        read_rule(TRY(text(value, pointer)), nullptr, config_.file.parent_path());
    if (!read) return config_.error_at(pointer, read.status().to_string());
    for (const PartitionSpecPtr& other : config_.specs)
      if (other->rule_text == read->text) read->rule = other->rule;
    set_rule(spec, std::move(*read));
    return {};
  }

  Status known_target(const json& value, const std::string& pointer) const {
    std::string all;
    for (const PartitionSpecPtr& spec : config_.specs) {
      if (value.is_string() && spec->name == value.get<std::string>()) return {};
      all += (all.empty() ? "" : ", ") + spec->name;
    }
    return bad(pointer, "one of the targets " + all, value);
  }

  Status incompatible(const json& value, const std::string& pointer) {
    if (!value.is_array()) return bad(pointer, "a list of pairs of targets", value);
    for (size_t i = 0; i < value.size(); ++i) {
      std::string at = pointer + "/" + std::to_string(i);
      if (!value[i].is_array() || value[i].size() != 2)
        return bad(at, "a pair of targets", value[i]);
      for (size_t k : {0, 1}) TRY(known_target(value[i][k], at + "/" + std::to_string(k)));
      if (value[i][0] == value[i][1]) return bad(at, "two different targets", value[i]);
      config_.incompatible.emplace_back(value[i][0].get<std::string>(),
                                        value[i][1].get<std::string>());
    }
    return {};
  }

  Status memory_weight(const json& value) {
    if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
      return bad("/memory_weight", "a number from 0", value);
    config_.memory_weight = value.get<double>();
    return {};
  }

  Status mock_costs(const json& value, const std::string& pointer) {
    TRY(object(value, pointer, {"per_op", "fusion_benefit", "max_estimates"}));
    MockCostTable costs;
    const json per_op = TRY(member(value, pointer, "per_op"));
    if (!per_op.is_object()) return bad(pointer + "/per_op", "an object", per_op);
    for (const auto& [target, cost] : per_op.items()) {
      std::string at = pointer + "/per_op/" + escaped(target);
      TRY(known_target(json(target), at));
      if (!cost.is_number() || !(cost.get<double>() >= 0) || !std::isfinite(cost.get<double>()))
        return bad(at, "a number from 0", cost);
      costs.per_op[target] = cost.get<double>();
    }
    for (const PartitionSpecPtr& spec : config_.specs)
      if (costs.per_op.count(spec->name) == 0)
        return config_.error_at(pointer + "/per_op",
                                fmt::format("the cost of target '{}' is missing", spec->name));
    if (value.contains("fusion_benefit")) {
      const json& benefit = value["fusion_benefit"];
      if (!benefit.is_number() || !(benefit.get<double>() > 0) || benefit.get<double>() > 1)
        return bad(pointer + "/fusion_benefit", "a number above 0, 1 at most", benefit);
      costs.fusion_benefit = benefit.get<double>();
    }
    if (value.contains("max_estimates"))
      costs.max_estimates = TRY(count(value["max_estimates"], pointer + "/max_estimates", 0));
    for (size_t i = 0; i < config_.specs.size(); ++i)
      if (config_.specs[i]->rule == nullptr)
        return config_.error_at(fmt::format("/targets/{}", i),
                                config_.specs[i]->rule_text.empty()
                                    ? "the key \"rule\" is missing, which mock costs need"
                                    : "with mock costs there is no backend for own() to mean");
    config_.mock_costs = std::move(costs);
    return {};
  }

  PartitionConfig& config_;
};

}  // namespace

Status PartitionConfig::error_at(const std::string& pointer, const std::string& message) const {
  return usage_error("{}: {}: {}", file.string(), pointer.empty() ? "/" : pointer, message);
}

Result<PartitionConfig> parse_config(std::string_view text, const std::filesystem::path& file) {
  PartitionConfig config;
  config.file = file;
  json root;
  if (nests_too_deep(text))
    return usage_error("{}: nested more than {} levels deep", file.string(), kMaxJsonDepth);
  try {
    root = json::parse(text);
  } catch (const json::parse_error& e) {
    return syntax_error(text, e, file);
  } catch (const json::exception& e) {  // a number out of range
    return usage_error("{}: {}", file.string(), e.what());
  }
  TRY(Reader(config).run(root));
  return config;
}

Result<PartitionConfig> read_config(const std::filesystem::path& file) {
  Result<std::string> text = read_file(file);
  if (!text) return usage_error("{}", text.status().to_string());
  return parse_config(*text, file);
}

}  // namespace collage
