#include "backend/targets/targets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "backend/targets/backends.h"
#include "base/regex.h"
#include "partition/rule_text.h"

namespace collage {

namespace {

PartitionSpecPtr backend_spec(const Target& target) {
  const Backend& backend = *find_backend(target.kind);
  auto spec = std::make_shared<PartitionSpec>();
  spec->name = target.kind;
  spec->rule = backend.partition_rule(target);
  spec->target = target;
  spec->compiler = compiler_of(backend);
  spec->is_host = backend.traits().is_host;
  spec->merges = backend.traits().prefers_maximal_regions;
  return spec;
}

// The host takes what nobody else can, so it is always there.
void add_host(std::vector<PartitionSpecPtr>& specs) {
  for (Backend* backend : all_backends())
    if (backend->traits().is_host &&
        std::none_of(specs.begin(), specs.end(), [&](const PartitionSpecPtr& spec) {
          return spec->target.kind == backend->name();
        }))
      specs.push_back(backend_spec({backend->name(), {}, {}}));
}

bool is_among(const std::vector<VirtualDevice>& devices, const VirtualDevice& device) {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

Status check_options(const Backend& backend, const Target& target) {
  const std::vector<TargetOption> known = backend.traits().options;
  for (const auto& [name, value] : target.options) {
    if (name == "cores") continue;  // on_cores
    const auto option = std::find_if(known.begin(), known.end(),
                                     [&](const TargetOption& one) { return one.name == name; });
    if (option == known.end()) {
      std::string names = "-device, -memory_scope, -rules";
      for (const TargetOption& one : known) names += fmt::format(", -{}", one.name);
      return usage_error("{} has no option -{}: it has {}", backend.name(), name, names);
    }
    const std::vector<std::string_view>& values = option->values;
    if (!values.empty() && std::find(values.begin(), values.end(), value) == values.end())
      return usage_error("-{} of {} is {}, not '{}'", name, backend.name(),
                         fmt::join(values, " or "), value);
  }
  return {};
}

bool is_declared(const DeclaredDevice& one, const VirtualDevice& device) {
  return one.kind == device.device && one.id == device.id;
}

// Whether a device is cpu:1 or a further one: cores of this machine.
bool is_of_cores(const VirtualDevice& device) { return is_host_memory(device) && device.id != 0; }

// Whether a backend's kernels may run on any cores: on threads that they are given.
bool runs_on_cores(const Backend& backend) {
  const BackendTraits& traits = backend.traits();
  return !traits.is_host && !traits.brings_own_threads && is_among(traits.devices, VirtualDevice{});
}

// The target with the cores that it states, or that its device was declared with.
Result<Target> on_cores(Target target, const DeclaredDevices& declared) {
  const std::string device = device_text(target.device);
  std::string& text = target.options["cores"];
  for (const DeclaredDevice& one : declared.list()) {
    if (!is_declared(one, target.device) || one.cores.empty()) continue;
    if (!text.empty() && TRY(Cores::parse(text)) != one.cores)
      return usage_error("{} is declared with the cores {}, not {}", device, one.cores.to_string(),
                         text);
    text = one.cores.to_string();
  }
  if (text.empty())
    return usage_error("{} has no cores: state them, as --devices cpu:0,{}@2-3 does", device,
                       device);
  const Cores cores = TRY(Cores::parse(text));
  TRY(cores.check_available().with_context(device));
  text = cores.to_string();
  return target;
}

// The target on the first of its backend's devices, where it states none.
Result<Target> on_own_device(const Backend& backend, Target target,
                             const DeclaredDevices& declared) {
  TRY(check_options(backend, target));
  if (is_of_cores(target.device) && runs_on_cores(backend))
    return on_cores(std::move(target), declared);
  const std::vector<VirtualDevice> devices = backend.traits().devices;
  if (target.device == VirtualDevice() && !devices.empty()) target.device = devices[0];
  if (is_among(devices, target.device)) {
    if (!target.options.contains("cores")) return target;
    return usage_error("{} has no cores of its own: only CPU devices beside cpu:0 do",
                       device_text(target.device));
  }
  std::string known;
  for (const VirtualDevice& device : devices)
    known += (known.empty() ? "" : ", ") + device_text(device);
  return error(ErrorCode::kUnavailable, "{} has no device {} here: it has {}", backend.name(),
               device_text(target.device), known.empty() ? "none" : known);
}

bool is_among(const DeclaredDevices& declared, const VirtualDevice& device) {
  return std::any_of(declared.list().begin(), declared.list().end(),
                     [&](const DeclaredDevice& one) { return is_declared(one, device); });
}

// On which of its devices a backend is a target where no targets are named: the first, unless it
// wants to be asked for; where devices are declared, those.
std::vector<VirtualDevice> devices_to_use(const Backend& backend, const DeclaredDevices& declared) {
  std::vector<VirtualDevice> result = backend.traits().devices;
  if (declared.list().empty()) {
    result.resize(backend.traits().by_default ? std::min<size_t>(result.size(), 1) : 0);
    return result;
  }
  std::erase_if(result, [&](const VirtualDevice& device) {
    const bool wants = backend.traits().by_default || !is_host_memory(device);
    return !wants || !device.memory_scope.empty() || !is_among(declared, device);
  });
  if (backend.traits().by_default && runs_on_cores(backend))
    for (const DeclaredDevice& one : declared.list())
      if (const VirtualDevice device{one.kind, one.id, ""}; is_of_cores(device))
        result.push_back(device);
  return result;
}

// That each target is on a declared device, and each of these has a backend; that a device has the
// same cores in all targets.
Status check_declared(const DeclaredDevices& declared, const std::vector<Target>& targets) {
  std::map<VirtualDevice, Cores> cores;
  for (const Target& target : targets)
    if (const auto [known, added] = cores.try_emplace(target.device, target.cores());
        known->second != target.cores())
      return usage_error("{} is the cores {} in one target, and {} in another",
                         device_text(target.device), known->second.to_string(),
                         target.cores().to_string());
  if (declared.list().empty()) return {};
  for (const Target& target : targets)
    if (!is_among(declared, target.device))
      return usage_error("target '{}' is on {}, which --devices does not name", target.to_string(),
                         device_text(target.device));
  const std::vector<Backend*> backends = all_backends();
  for (const DeclaredDevice& one : declared.list()) {
    const VirtualDevice device{one.kind, one.id, ""};
    if (std::none_of(backends.begin(), backends.end(), [&](const Backend* backend) {
          return backend->available().ok() && (is_among(backend->traits().devices, device) ||
                                               (is_of_cores(device) && runs_on_cores(*backend)));
        }))
      return error(ErrorCode::kUnavailable, "no backend offers the device {} here",
                   device_text(device));
  }
  return {};
}

// Which equals sign of REGEX=TARGET is that one. Options of targets and regular expressions hold
// some too: it is the last one that the name of a backend follows, else the last. npos: none.
template <typename IsBackend>
size_t end_of_regex(const std::string& text, const IsBackend& is_backend) {
  for (size_t end = text.size(); end > 0;) {
    const size_t equals = text.rfind('=', end - 1);
    if (equals == std::string::npos) break;
    const size_t space = text.rfind(' ', equals);  // "-device=gpu": of an option
    const bool option = space != std::string::npos && text[space + 1] == '-';
    if (!option && is_backend(text.substr(equals + 1, text.find(' ', equals) - equals - 1)))
      return equals;
    end = equals;
  }
  return text.rfind('=');
}

}  // namespace

Result<TargetConstraints> TargetConstraints::parse(const std::vector<std::string>& exclude,
                                                   const std::vector<std::string>& pin,
                                                   const DeclaredDevices& devices,
                                                   std::span<const PartitionSpecPtr> others) {
  TargetConstraints constraints;
  const auto is_backend = [&](const std::string& kind) {
    return find_backend(kind) != nullptr ||
           std::any_of(others.begin(), others.end(),
                       [&](const PartitionSpecPtr& spec) { return spec->target.kind == kind; });
  };
  // A device may be called as a backend is.
  const auto named = [&](const std::string& text) {
    return TargetsNamed::parse(text, is_backend(text) ? DeclaredDevices() : devices);
  };
  const auto is_known = [&](const std::string& text) {
    const Result<TargetsNamed> name = named(text);
    return name.ok() && (name->kind().empty() || is_backend(name->kind()));
  };
  const auto known = [&](const std::string& text) -> Result<TargetsNamed> {
    TargetsNamed name = TRY(named(text));
    if (!name.kind().empty() && !is_backend(name.kind()))
      return usage_error("unknown backend '{}'", name.kind());
    return name;
  };
  for (const std::string& text : exclude) {
    // A number after the colon is a device's.
    size_t colon = text.rfind(':');
    if (colon != std::string::npos && text.find_first_of("0123456789", colon) == colon + 1)
      colon = std::string::npos;
    Exclusion exclusion{TRY(known(text.substr(0, colon)).with_context("--exclude " + text)),
                        colon == std::string::npos ? "" : text.substr(colon + 1)};
    if (!exclusion.op.empty() && find_op(exclusion.op) == nullptr)
      return usage_error("--exclude {}: unknown operator '{}'", text, exclusion.op);
    constraints.exclusions.push_back(std::move(exclusion));
  }
  for (const std::string& text : pin) {
    const size_t equals = end_of_regex(text, is_known);
    if (equals == std::string::npos) return usage_error("--pin {}: expected REGEX=TARGET", text);
    TargetsNamed target = TRY(known(text.substr(equals + 1)).with_context("--pin " + text));
    const std::string origin = text.substr(0, equals);
    TRY(Regex::parse(origin).with_context("--pin " + text));
    constraints.pins.push_back({origin, std::move(target), text});
  }
  return constraints;
}

bool TargetConstraints::excludes(const Target& target) const {
  return std::any_of(exclusions.begin(), exclusions.end(), [&](const Exclusion& exclusion) {
    return exclusion.op.empty() && exclusion.target.means(target);
  });
}

Module TargetConstraints::annotated(Module module) const {
  if (exclusions.empty() && pins.empty()) return module;
  for (auto& [name, function] : module.functions) {
    if (function->attrs.has("Primitive")) continue;
    Attrs attrs = function->attrs;
    for (const Exclusion& one : exclusions) state_targets(kExclude, one.target, one.op, attrs);
    for (const Pin& pin : pins) state_targets(kPin, pin.target, pin.origin, attrs);
    function = make_function(function->params, function->body, std::move(attrs));
  }
  return module;
}

Status TargetConstraints::check_pins(std::span<const PartitionSpecPtr> specs) const {
  for (const Pin& pin : pins) {
    std::string used;
    for (const PartitionSpecPtr& spec : specs)
      used += (used.empty() ? "" : ", ") + spec->target.to_string();
    if (std::none_of(specs.begin(), specs.end(),
                     [&](const PartitionSpecPtr& spec) { return pin.target.means(spec->target); }))
      return usage_error("--pin {}: {} is not among the targets in use: {}", pin.text,
                         pin.target.text(), used);
  }
  return {};
}

Result<std::vector<PartitionSpecPtr>> select_targets(const std::vector<std::string>& requested,
                                                     const TargetConstraints& constraints,
                                                     const DeclaredDevices& declared) {
  register_all();
  std::vector<Target> targets;
  std::map<Target, std::string> rules;  // as the option -rules, which is the candidates' alone
  for (const std::string& text : requested) {
    Target target = TRY(Target::parse(declared.with_numbers(text)));
    const auto option = target.options.extract("rules");
    const std::string rule = option.empty() ? "" : option.mapped();
    Backend* backend = find_backend(target.kind);
    if (backend == nullptr) {
      for (const MissingBackend& missing : missing_backends())
        if (missing.name == target.kind)
          return error(ErrorCode::kUnavailable, "target '{}' is not in this build: install {}",
                       text, missing.remedy);
      std::string names;
      for (Backend* known : all_backends()) names += (names.empty() ? "" : ", ") + known->name();
      return usage_error("unknown target '{}': this build has {}", text, names);
    }
    Status available = backend->available();
    if (!available.ok())
      return error(ErrorCode::kUnavailable, "target '{}': {}", text, available.message());
    target = TRY(on_own_device(*backend, std::move(target), declared)
                     .with_context(fmt::format("target '{}'", text)));
    const auto [known, added] = rules.emplace(target, rule);
    if (!added && known->second != rule)
      return usage_error("target '{}' has two rules", target.to_string());
    if (added) targets.push_back(std::move(target));
  }
  if (requested.empty())
    for (Backend* backend : all_backends()) {
      // A backend's library may be loaded to see whether it is available: of those in use alone.
      const std::vector<VirtualDevice> devices = devices_to_use(*backend, declared);
      if (devices.empty() || !backend->available().ok()) continue;
      for (const VirtualDevice& device : devices)
        targets.push_back(TRY(on_own_device(*backend, {backend->name(), {}, device}, declared)));
    }
  TRY(check_declared(declared, targets));
  std::erase_if(targets, [&](const Target& target) { return constraints.excludes(target); });
  std::stable_sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    Backend *x = find_backend(a.kind), *y = find_backend(b.kind);
    if (x->traits().is_host != y->traits().is_host) return y->traits().is_host;
    return x->traits().priority < y->traits().priority;
  });
  std::vector<PartitionSpecPtr> specs;
  for (const Target& target : targets) {
    auto spec = std::make_shared<PartitionSpec>(*backend_spec(target));
    if (const std::string& rule = rules[target]; !rule.empty())
      set_rule(*spec, TRY(read_rule(rule, spec.get())
                              .with_context(fmt::format("target '{}'", target.to_string()))));
    specs.push_back(std::move(spec));
  }
  add_host(specs);
  TRY(constraints.check_pins(specs));
  return specs;
}

Result<DeclaredDevices> parse_devices_flag(const std::string& text) {
  if (text.empty()) return DeclaredDevices();
  return DeclaredDevices::parse(text).with_context("--devices " + text);
}

Result<std::vector<PartitionSpecPtr>> configured_targets(const PartitionConfig& config,
                                                         const TargetConstraints& constraints,
                                                         const DeclaredDevices& declared) {
  register_all();
  if (config.mock_costs)
    return config.error_at("/mock_costs",
                           "with mock costs nothing is compiled: only `collage partition` takes "
                           "them");
  std::vector<PartitionSpecPtr> specs;
  std::vector<Target> targets;
  for (size_t i = 0; i < config.specs.size(); ++i) {
    const PartitionSpec& given = *config.specs[i];
    std::string name = given.compiler.empty() ? given.name : given.compiler;
    Backend* backend = find_backend(name);
    std::string pointer =
        fmt::format("/targets/{}/{}", i, given.compiler.empty() ? "name" : "compiler");
    if (backend == nullptr)
      return config.error_at(pointer, fmt::format("there is no backend '{}'", name));
    Status available = backend->available();
    if (!available.ok())
      return error(ErrorCode::kUnavailable, "{}: {}: {}", config.file.string(), pointer,
                   available.message());
    const Target stated{backend->name(), given.target.options, given.target.device};
    const Target target =
        TRY(on_own_device(*backend, TRY(Target::parse(declared.with_numbers(stated.to_string()))),
                          declared)
                .with_context(fmt::format("{}: /targets/{}/device", config.file.string(), i)));
    auto spec = std::make_shared<PartitionSpec>(*backend_spec(target));
    RuleText rule{given.rule, given.rule_text, given.merges};
    if (rule.rule == nullptr && !rule.text.empty()) rule = TRY(parse_rule(rule.text, spec.get()));
    if (rule.rule != nullptr) set_rule(*spec, std::move(rule));
    spec->merges = config.merges[i].value_or(spec->merges);
    spec->name = given.name;
    targets.push_back(target);
    specs.push_back(std::move(spec));
  }
  TRY(check_declared(declared, targets));
  add_host(specs);
  TRY(constraints.check_pins(specs));
  return specs;
}

}  // namespace collage
