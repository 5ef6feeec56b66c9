// A file of shipped costs from a database that was filled by measuring.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>

#include "backend/backend.h"
#include "base/statistics.h"
#include "cost/cost_keys.h"
#include "cost/machine.h"
#include "cost/row_values.h"
#include "cost/shipped_costs.h"
#include "ir/text_parser.h"

namespace collage {

using nlohmann::json;

namespace {

// Of a target whose kernels run in ordinary memory: what other devices take says nothing elsewhere.
bool is_of_processor(const Backend* backend) {
  return backend != nullptr && !backend->traits().is_host &&
         std::all_of(backend->traits().devices.begin(), backend->traits().devices.end(),
                     is_host_memory);
}

std::optional<CacheState> state_named(std::string_view name) {
  for (const CacheState state : {CacheState::kWarm, CacheState::kCold, CacheState::kStreaming})
    if (name == cache_state_name(state)) return state;
  return std::nullopt;
}

// Types alone matter.
Result<Function> function_of(const std::string& text) {
  ParseOptions options;
  options.constant = [](const TensorType& type, size_t) -> Result<Tensor> {
    return Tensor::allocate(type.dtype, type.shape);
  };
  return parse_function(text, options);
}

class ShippedFile {
 public:
  explicit ShippedFile(std::string machine) : machine_(std::move(machine)) {}

  Status add(const CostRow& row) {
    if (row.kind != "function" && row.kind != "conversion" && row.kind != "trial") return {};
    std::istringstream in(row.context);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const json value = parse_json(row.value);
    const bool is_function = is_of_function(row, value);
    const size_t machine = is_function ? 2 : 0;
    if (lines.size() <= machine || !lines[machine].starts_with(machine_ + " ") ||
        (is_function && lines.size() > machine + 2))  // of lowered variants
      return {};
    const std::optional<CacheState> state =
        state_named(std::string_view(lines[machine]).substr(machine_.size() + 1));
    if (!state) return {};
    if (!is_function) return add_conversion(row, *state, value);
    const Result<Target> target = Target::parse(lines[0]);
    if (!target || !is_of_processor(find_backend(target->kind)) ||
        !is_of_library(lines[1], target->kind))
      return {};
    return add_function(row, *state, value);
  }

  void write(MachineSpeed speed, std::ostream& out) {
    // The probe may fall on a bad moment: the machine is as fast as the better kernels at least.
    constexpr double kLarge = 1e8, kBetter = 0.9;  // operations; a part of the kernels
    std::vector<double> rates;
    for (const KernelEstimates::Sample& sample : samples_)
      if (sample.work.operations > kLarge) rates.push_back(sample.work.operations / sample.seconds);
    if (!rates.empty()) speed.float32 = std::max(speed.float32, percentile(rates, kBetter));
    size_t lines = 0;
    const auto line = [&](const auto&... words) {
      ((out << words), ...) << "\n";
      ++lines;
    };
    const size_t threads_at = machine_.rfind(' ');
    json versions = json::object();
    for (const Backend* backend : all_backends())
      if (is_of_processor(backend)) versions[backend->name()] = library_version(backend->name());
    const int threads = std::stoi(machine_.substr(machine_.find('=', threads_at) + 1));
    line(json_text({{shipped::kHead, shipped::kFormat},
                    {"processor", machine_.substr(0, threads_at)},
                    {"kind", kind_here(threads)},
                    {"threads", threads},
                    {"versions", versions},
                    {"speed", to_json(speed)}}));
    const KernelEstimates estimates = KernelEstimates::fit(samples_, speed);
    for (const json& one : estimates.to_json()) line(shipped::kEstimate, " ", json_text(one));
    for (const std::string& variant : variants_) line(shipped::kVariant, " ", variant);
    for (const auto& [key, row] : kernels_) {
      std::string text;
      for (const auto& [variant, sample] : row.figures)
        text += fmt::format(" {}:{:.3g}", variant, 1e6 * seconds_of(sample, estimates, speed));
      line(shipped::kKernel, " ", key, text);
    }
    for (const auto& [key, row] : conversions_)
      line(shipped::kConversion, " ", key,
           fmt::format(" {:.3g}", 1e6 * row.figures.at(0).sample.seconds));
    out << shipped::kEnd << " " << lines << "\n";
  }

 private:
  struct Figure {
    size_t variant = 0;              // its number
    KernelEstimates::Sample sample;  // of 0 seconds: it was not measured
  };
  struct Row {
    std::vector<Figure> figures;
    std::string written;
    bool is_timed = false;
  };

  // What was listed and never measured could not be in a best cover even at the least that it can
  // take: more than what would be expected of it.
  static double seconds_of(const KernelEstimates::Sample& sample, const KernelEstimates& estimates,
                           const MachineSpeed& speed) {
    constexpr double kDearer = 1.5;
    if (sample.seconds > 0) return sample.seconds;
    return kDearer *
           estimates.seconds(sample.target, sample.algorithm, sample.work, speed).value_or(1);
  }

  static void keep(std::map<std::string, Row>& rows, const std::string& key, Row row) {
    Row& known = rows[key];
    if (std::pair(row.is_timed, row.written) >= std::pair(known.is_timed, known.written))
      known = std::move(row);
  }

  Status add_conversion(const CostRow& row, CacheState state, const json& value) {
    const ConversionRow conversion = TRY(conversion_row_from_json(value));
    const Measured* figure = measured(conversion.cost);
    if (figure == nullptr) return {};
    keep(conversions_, shipped::key_of(shipped::kernel_id(row.text, kConversions), state),
         {{{0, {kConversions, "", {}, figure->seconds()}}}, row.written, true});
    return {};
  }

  Status add_function(const CostRow& row, CacheState state, const json& value) {
    const TargetCosts costs = TRY(target_costs_from_json(value));
    if (costs.failure != WorkerFailure::kNone) return {};
    const Result<Function> function = function_of(row.text);
    Row kept{{}, row.written, row.kind == "function"};
    for (const MeasuredVariant& one : costs.variants) {
      if (std::holds_alternative<Invalid>(one.cost) || (!function && !measured(one.cost))) continue;
      Figure figure{number_of(one.variant), {costs.target, algorithm_of(one.variant), {}, 0}};
      if (function) figure.sample.work = work_of(*function, one.variant, state);
      if (const Measured* m = measured(one.cost)) {
        figure.sample.seconds = m->seconds();
        if (function) samples_.push_back(figure.sample);
      }
      kept.figures.push_back(std::move(figure));
    }
    keep(kernels_, shipped::key_of(shipped::kernel_id(row.text, costs.target), state),
         std::move(kept));
    return {};
  }

  size_t number_of(const Variant& variant) {
    const std::string text = json_text(to_json(variant));
    const auto [at, is_new] = numbers_.try_emplace(text, variants_.size());
    if (is_new) variants_.push_back(text);
    return at->second;
  }

  const std::string machine_;  // processor and threads
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> variants_;
  std::map<std::string, Row> kernels_, conversions_;  // by key
  std::vector<KernelEstimates::Sample> samples_;
};

// This processor with the number of threads that most rows are of.
std::string machine_of(CostDatabase& database) {
  std::map<std::string, size_t> rows;
  const std::string processor = processor_name() + " threads=";
  (void)database.for_each([&](const CostRow& row) -> Status {
    const size_t at = row.context.find("\n" + processor);
    if (row.kind != "function" || at == std::string::npos) return {};
    const size_t end = row.context.find(' ', at + 1 + processor.size());
    ++rows[row.context.substr(at + 1, end - at - 1)];
    return {};
  });
  const auto most = std::max_element(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most != rows.end() ? most->first : "";
}

}  // namespace

Status write_shipped_costs(CostDatabase& database, std::ostream& out) {
  const std::string machine = machine_of(database);
  if (machine.empty())
    return error(ErrorCode::kUnavailable, "no kernel was measured on this processor");
  ShippedFile file(machine);
  TRY(database.for_each([&](const CostRow& row) { return file.add(row); }));
  file.write(probe_machine(std::stoi(machine.substr(machine.rfind('=') + 1))), out);
  if (!out.flush()) return internal_error("cannot write the export");
  return {};
}

}  // namespace collage
