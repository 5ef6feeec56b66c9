#include "bench_text.h"

#include <fmt/format.h>

#include "base/statistics.h"

namespace collage::tool {

namespace {

constexpr double kMegabyte = 1e6;

std::string percentiles(const std::vector<double>& seconds) {
  std::string text = fmt::format("median {:9.3f} ms", 1e3 * median(seconds));
  for (int percent : {10, 90, 95, 99})
    text += fmt::format("   p{} {:9.3f}", percent, 1e3 * percentile(seconds, 0.01 * percent));
  return text;
}

}  // namespace

std::string statistics_line(const std::string& name, const std::vector<double>& seconds) {
  return fmt::format("{:<13} {}   {} runs", name, percentiles(seconds), seconds.size());
}

std::string throughput_lines(const RunFacts::Throughput& throughput) {
  std::string text = fmt::format(
      "{:<13} {:9.1f} inferences/s, {} streams of {} {}\n{:<13} {} in a stream\n", "collage",
      median(throughput.per_second), throughput.streams, throughput.threads_per_stream,
      throughput.threads_per_stream == 1 ? "thread" : "threads", "",
      percentiles(throughput.latencies));
  if (!throughput.why_apart.empty())
    text += fmt::format("{:<13} a program for each stream: {}\n", "", throughput.why_apart);
  for (const auto& [name, peer] : throughput.peers)
    text += fmt::format("{:<13} {:9.1f} inferences/s\n", name, median(peer.per_second));
  for (const auto& [name, peer] : throughput.peers)
    text += peer.speed_up ? fmt::format("over {} {}\n", name, to_text(*peer.speed_up))
                          : fmt::format("over {} no ratio: outputs differ by too much: {}\n", name,
                                        peer.difference.reason);
  return text;
}

std::string memory_line(size_t arena_bytes, size_t resident_bytes) {
  return fmt::format("{:<13} {:.1f} MB of intermediate tensors, {:.1f} MB of the process at most\n",
                     "memory", static_cast<double>(arena_bytes) / kMegabyte,
                     static_cast<double>(resident_bytes) / kMegabyte);
}

}  // namespace collage::tool
