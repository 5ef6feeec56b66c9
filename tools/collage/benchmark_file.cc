#include "benchmark_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/statistics.h"

namespace collage::tool {

namespace {

using nlohmann::ordered_json;

// The columns of Google Benchmark's CSV, with our counters after them.
constexpr const char* kColumns[] = {
    "name",           "iterations",       "real_time",        "cpu_time",
    "time_unit",      "bytes_per_second", "items_per_second", "label",
    "error_occurred", "error_message"};
constexpr const char* kCounters[] = {"p10_ms", "p90_ms", "p95_ms", "p99_ms", "peak_bytes"};

// real_time is the median of single inferences, or what the rate gives where these are not known.
// Nobody measures the processors' time of other runtimes, so cpu_time is 0 throughout.
ordered_json row_json(const BenchmarkRow& row) {
  const bool timed = !row.seconds.empty();
  ordered_json entry = {
      {"name", row.name},
      {"run_name", row.name},
      {"run_type", "iteration"},
      {"repetitions", 1},
      {"repetition_index", 0},
      {"threads", row.threads},
      {"iterations", timed ? row.seconds.size() : 1},
      {"real_time", 1e3 * (timed ? median(row.seconds) : 1 / row.items_per_second)},
      {"cpu_time", 0.0},
      {"time_unit", "ms"},
      {"items_per_second", row.items_per_second}};
  if (timed)
    for (int percent : {10, 90, 95, 99})
      entry[fmt::format("p{}_ms", percent)] = 1e3 * percentile(row.seconds, 0.01 * percent);
  if (row.peak_bytes > 0) entry["peak_bytes"] = row.peak_bytes;
  return entry;
}

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string json_text(const std::vector<BenchmarkRow>& rows) {
  ordered_json benchmarks = ordered_json::array();
  for (const BenchmarkRow& row : rows) benchmarks.push_back(row_json(row));
  ordered_json context = {
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%S+00:00}", fmt::gmtime(std::time(nullptr)))},
      {"host_name", host_name()},
      {"executable", "collage"},
      {"num_cpus", std::thread::hardware_concurrency()},
      {"mhz_per_cpu", 0},
      {"caches", ordered_json::array()},
      {"load_avg", ordered_json::array()},
      {"library_build_type", "release"}};
  ordered_json all = {{"context", std::move(context)}, {"benchmarks", std::move(benchmarks)}};
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string csv_text(const std::vector<BenchmarkRow>& rows) {
  std::string text;
  const auto end_line = [&] { text.back() = '\n'; };
  for (const char* column : kColumns) text += std::string(column) + ",";
  for (const char* counter : kCounters) text += fmt::format("\"{}\",", counter);
  end_line();
  for (const BenchmarkRow& row : rows) {
    const ordered_json entry = row_json(row);
    const auto field = [&](const char* column) {
      if (const auto found = entry.find(column); found != entry.end()) {
        std::string value = found->is_string() ? found->get<std::string>() : found->dump();
        for (size_t at = 0; (at = value.find('"', at)) != std::string::npos; at += 2)
          value.insert(at, "\"");
        text += std::string(column) == "name" ? "\"" + value + "\"" : value;
      }
      text += ",";
    };
    for (const char* column : kColumns) field(column);
    for (const char* counter : kCounters) field(counter);
    end_line();
  }
  return text;
}

}  // namespace

Status write_benchmark_file(const std::string& path, const std::vector<BenchmarkRow>& rows) {
  if (path.empty()) return {};
  const bool is_csv = std::filesystem::path(path).extension() == ".csv";
  return write_file_atomically(path, is_csv ? csv_text(rows) : json_text(rows));
}

}  // namespace collage::tool
