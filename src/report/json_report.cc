#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/hash.h"
#include "base/statistics.h"
#include "report/host_share.h"
#include "report/report.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr int kSchemaVersion = 2;

json milliseconds(const Measured& m) {
  return {
      {"median", 1e3 * m.median}, {"p10", 1e3 * m.p10}, {"p90", 1e3 * m.p90}, {"count", m.samples}};
}

json cost_json(const Cost& cost) {
  const Measured* m = measured(cost);
  return m != nullptr ? milliseconds(*m) : json(nullptr);
}

json statistics_json(const std::vector<double>& samples, double unit) {
  json result = {{"median", unit * median(samples)}, {"count", samples.size()}};
  for (int percent : {10, 90, 95, 99})
    result["p" + std::to_string(percent)] = unit * percentile(samples, 0.01 * percent);
  return result;
}

json speed_up_json(const SpeedUp& speed_up) {
  return {{"median", speed_up.ratio},
          {"low", speed_up.interval.low},
          {"high", speed_up.interval.high},
          {"turns", speed_up.turns},
          {"verdict", verdict_name(speed_up.verdict)}};
}

json difference_json(const RunFacts::OutputDifference& difference) {
  json result = {{"max_abs", difference.max_abs},
                 {"max_rel", difference.max_rel},
                 {"within", difference.within}};
  if (!difference.within) result["reason"] = difference.reason;
  return result;
}

json throughput_json(const RunFacts::Throughput& throughput) {
  json peers = json::object();
  for (const auto& [name, peer] : throughput.peers) {
    peers[name] = {{"version", peer.version},
                   {"per_second", statistics_json(peer.per_second, 1)},
                   {"difference", difference_json(peer.difference)}};
    if (peer.speed_up) peers[name]["speed_up"] = speed_up_json(*peer.speed_up);
  }
  return {{"streams", throughput.streams},
          {"threads_per_stream", throughput.threads_per_stream},
          {"programs", throughput.programs},
          {"per_second", statistics_json(throughput.per_second, 1)},
          {"latency_ms", statistics_json(throughput.latencies, 1e3)},
          {"peers", std::move(peers)}};
}

json tensor_json(const TensorType& type, const Encoding& encoding) {
  json entry = {{"shape", type.shape},
                {"dtype", dtype_name(encoding.dtype)},
                {"layout", encoding.layout.to_string()}};
  if (!is_host_memory(encoding.device)) entry["device"] = device_text(encoding.device);
  return entry;
}

json shapes_json(const std::vector<TensorType>& types) {
  json list = json::array();
  for (const TensorType& type : types)
    list.push_back({{"shape", type.shape}, {"dtype", dtype_name(type.dtype)}});
  return list;
}

// A cost, or the reason why there is none.
void add_cost(json& entry, const Cost& cost) {
  if (const auto* invalid = std::get_if<Invalid>(&cost)) {
    entry["reason"] = invalid->reason;
  } else {
    entry["cost_ms"] = cost_json(cost);
  }
}

// What kernels are held against; null: nobody measured the machine's peaks.
struct Roofs {
  const MachinePeaks* peaks = nullptr;
  double constants = 0;  // bytes, of the model
};

json kernel_json(const ReportedPlan::Kernel& kernel, const Roofs& roofs) {
  json ops = json::array(), inputs = json::array(), outputs = json::array(),
       alternatives = json::array();
  for (const auto& op : kernel.ops)
    ops.push_back({{"op", op.op}, {"index", op.index}, {"onnx_node", op.onnx_node}});
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    inputs.push_back(tensor_json(kernel.inputs[i], kernel.variant.inputs[i]));
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    outputs.push_back(tensor_json(kernel.outputs[i], kernel.variant.outputs[i]));
  for (const Alternative& other : kernel.alternatives) {
    json entry = {{"target", other.target}, {"variant", other.variant}};
    add_cost(entry, other.cost);
    alternatives.push_back(std::move(entry));
  }
  json entry = {{"name", kernel.name},
                {"target", kernel.target},
                {"variant", kernel.variant.to_string()},
                {"ops", ops},
                {"nodes", kernel.nodes},
                {"cost_ms", cost_json(kernel.cost)},
                {"predicted_ms", 1e3 * kernel.predicted_seconds},
                {"flops", kernel.flops},
                {"bytes", kernel.bytes},
                {"inputs", inputs},
                {"outputs", outputs},
                {"alternatives", alternatives}};
  if (kernel.variant.loses_nan) entry["loses_nan"] = true;
  if (kernel.variant.spreads_nan) entry["spreads_nan"] = true;
  if (roofs.peaks != nullptr) {
    const Roof roof =
        roof_of(*roofs.peaks, least_work(kernel.function, kernel.variant), roofs.constants);
    entry["roof"] = {{"least_ms", 1e3 * roof.seconds}, {"bound", roof.bound}};
  }
  return entry;
}

json kernels_json(const std::vector<ReportedPlan::Kernel>& kernels, const Roofs& roofs) {
  json list = json::array();
  for (const ReportedPlan::Kernel& kernel : kernels) list.push_back(kernel_json(kernel, roofs));
  return list;
}

json conversions_json(const std::vector<ReportedConversion>& conversions) {
  json list = json::array();
  for (const ReportedConversion& c : conversions)
    list.push_back({{"name", c.name},
                    {"node", c.tensor.node},
                    {"leaf", c.tensor.leaf},
                    {"shape", c.type.shape},
                    {"from", c.from.to_string()},
                    {"to", c.to.to_string()},
                    {"cost_ms", cost_json(c.cost)},
                    {"predicted_ms", 1e3 * c.predicted_seconds}});
  return list;
}

json nodes_json(const std::vector<ReportedNode>& nodes) {
  json list = json::array();
  for (const ReportedNode& node : nodes) {
    json entry = {{"index", node.index},
                  {"op", node.op},
                  {"onnx_node", node.onnx_node},
                  {"inputs", node.inputs},
                  {"outputs", shapes_json(node.outputs)}};
    if (node.is_result) entry["is_result"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

json considered_json(const std::vector<ReportedCandidate>& candidates) {
  json list = json::array();
  for (const ReportedCandidate& candidate : candidates) {
    json entry = {
        {"target", candidate.target}, {"variant", candidate.variant}, {"nodes", candidate.nodes}};
    add_cost(entry, candidate.cost);
    list.push_back(std::move(entry));
  }
  return list;
}

json edges_json(const std::vector<ReportedEdge>& edges) {
  json list = json::array();
  for (const ReportedEdge& edge : edges) {
    json entry = tensor_json(edge.type, edge.encoding);
    entry["from"] = edge.from;
    entry["to"] = edge.to;
    list.push_back(std::move(entry));
  }
  return list;
}

json arena_json(const std::vector<ReportedSlot>& arena) {
  json list = json::array();
  for (const ReportedSlot& slot : arena)
    list.push_back({{"step", slot.step},
                    {"workspace", slot.workspace},
                    {"offset", slot.offset},
                    {"bytes", slot.bytes},
                    {"first", slot.first},
                    {"last", slot.last}});
  return list;
}

// SHA-256 of the model's file and of the external data beside it, as far as they can be read.
std::string model_hash(const std::filesystem::path& path) {
  Sha256 hash;
  for (const std::filesystem::path& file : {path, std::filesystem::path(path.string() + ".data")}) {
    std::ifstream in(file, std::ios::binary);
    std::string chunk(1 << 20, '\0');
    while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0)
      hash.update(chunk.data(), static_cast<size_t>(in.gcount()));
  }
  return hash.hex();
}

json variations_json(const std::map<std::string, ReportedVariation>& variations) {
  json result = json::object();
  for (const auto& [origin, variation] : variations)
    result[origin] = {{"searches", variation.searches},
                      {"covers", variation.covers},
                      {"chosen", variation.chosen}};
  return result;
}

json search_json(const CompileReport& report) {
  return {
      {"candidates", report.candidates},
      {"truncated", report.truncated},
      {"pruned", report.pruned},
      {"functions", report.functions},
      {"searches", report.searches.searches},
      {"from_linear_program", report.searches.from_linear_program},
      {"branches", report.searches.branches},
      {"exact", report.exact},
      {"gap", report.gap},
      {"light", report.light},
      {"covers_timed", std::count_if(report.covers.begin(), report.covers.end(),
                                     [](const ReportedPlan& c) { return c.measured.has_value(); })},
      {"variations", variations_json(report.variations)}};
}

json estimates_json(const CompileReport& report) {
  return {{"measured", report.estimates.measured},
          {"cached", report.estimates.cached},
          {"tried", report.estimates.tried},
          {"invalid", report.estimates.invalid},
          {"crashed", report.estimates.crashed},
          {"timed_out", report.estimates.silent},
          {"out_of_memory", report.estimates.out_of_memory},
          {"lacking", report.estimates.lacking}};
}

json memory_json(const CompileReport& report, const RunFacts& facts) {
  json memory = {{"planned", report.arena_bytes}};
  for (const DeviceArena& arena : report.device_arenas)
    memory["devices"][device_text(arena.device)] = arena.bytes;
  if (facts.resident_bytes > 0) memory["measured"] = facts.resident_bytes;
  return memory;
}

// Whether no other cover that was timed is both as fast and as small.
bool is_on_front(const ReportedPlan& cover, const std::vector<ReportedPlan>& covers) {
  if (!cover.measured || cover.bytes == 0) return false;
  return std::none_of(covers.begin(), covers.end(), [&](const ReportedPlan& other) {
    if (!other.measured || other.bytes == 0) return false;
    const double slower = other.measured->median - cover.measured->median;
    return slower <= 0 && other.bytes <= cover.bytes && (slower < 0 || other.bytes < cover.bytes);
  });
}

json covers_json(const std::vector<ReportedPlan>& covers) {
  json list = json::array();
  for (const ReportedPlan& cover : covers) {
    json entry = {{"name", cover.name},
                  {"origin", cover.origin},
                  {"single_backend", cover.single_backend},
                  {"predicted_ms", 1e3 * cover.predicted_seconds},
                  {"chosen", cover.chosen}};
    if (cover.measured) entry["measured_ms"] = milliseconds(*cover.measured);
    if (cover.bytes > 0) entry["memory"] = cover.bytes;
    if (is_on_front(cover, covers)) entry["on_front"] = true;
    if (!cover.failure.empty()) entry["failure"] = cover.failure;
    list.push_back(std::move(entry));
  }
  return list;
}

json single_backends_json(const std::vector<ReportedPlan>& covers) {
  json singles = json::object();
  for (const ReportedPlan& cover : covers)
    if (cover.single_backend && cover.measured) singles[cover.name] = 1e3 * cover.measured->median;
  return singles;
}

json plans_json(const std::vector<ReportedPlan>& plans, const Roofs& roofs) {
  json list = json::array();
  for (const ReportedPlan& plan : plans)
    if (plan.single_backend)
      list.push_back({{"name", plan.name},
                      {"predicted_ms", 1e3 * plan.predicted_seconds},
                      {"correction_ms", 1e3 * plan.correction_seconds},
                      {"kernels", kernels_json(plan.kernels, roofs)},
                      {"conversions", conversions_json(plan.conversions)}});
  return list;
}

json rejections_json(const CompileReport& report) {
  json list = json::array();
  for (const auto& rejection : report.rejections)
    list.push_back(
        {{"node", rejection.node}, {"backend", rejection.backend}, {"reason", rejection.reason}});
  return list;
}

json timeline_json(const RunFacts& facts) {
  json steps = json::array();
  double now = 0;
  for (const auto& [name, seconds] : facts.timeline) {
    steps.push_back({{"name", name}, {"start_ms", 1e3 * now}, {"ms", 1e3 * seconds}});
    now += seconds;
  }
  return steps;
}

json peaks_json(const MachinePeaks& peaks) {
  json result = {{"gflops", 1e-9 * peaks.flops_per_second},
                 {"units", json::object()},
                 {"levels", json::array()}};
  for (const auto& [unit, operations] : peaks.unit_operations_per_second)
    result["units"][unit] = 1e-9 * operations;
  for (const MemoryLevel& level : peaks.levels) {
    json entry = {{"name", level.name}, {"gbytes", 1e-9 * level.bytes_per_second}};
    if (std::isfinite(level.bytes)) entry["bytes"] = level.bytes;
    result["levels"].push_back(std::move(entry));
  }
  return result;
}

json what_if_json(const std::vector<RunFacts::WhatIf>& others) {
  json list = json::array();
  for (const RunFacts::WhatIf& other : others) {
    json entry = {{"flag", other.flag}};
    if (other.failure.empty()) {
      entry["predicted_ms"] = 1e3 * other.predicted_seconds;
      entry["change_ms"] = 1e3 * other.change_seconds;
    } else {
      entry["failure"] = other.failure;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

json peer_json(const RunFacts::Peer& peer) {
  json result = peer.samples.empty() ? json{{"failure", peer.failure}} : latency_json(peer.samples);
  result["version"] = peer.version;
  if (peer.call_seconds > 0) result["call_ms"] = 1e3 * peer.call_seconds;
  if (peer.speed_up) result["speed_up"] = speed_up_json(*peer.speed_up);
  if (peer.speed_up_without_call)
    result["speed_up_without_call"] = speed_up_json(*peer.speed_up_without_call);
  if (peer.difference) result["difference"] = difference_json(*peer.difference);
  return result;
}

json rival_json(const RunFacts::Rival& rival) {
  json result = latency_json(rival.samples);
  result["name"] = rival.name;
  result["speed_up"] = speed_up_json(rival.speed_up);
  return result;
}

/// What is there only where somebody asked for it, or ran the program.
void add_run_facts(json& result, const RunFacts& facts) {
  if (!facts.samples.empty()) result["latency_ms"] = latency_json(facts.samples);
  if (facts.throughput) result["throughput"] = throughput_json(*facts.throughput);
  if (!facts.timeline.empty()) result["timeline"] = timeline_json(facts);
  if (facts.peaks) result["env"]["peaks"] = peaks_json(*facts.peaks);
  if (!facts.what_if.empty()) result["what_if"] = what_if_json(facts.what_if);
  if (facts.verification) result["verification"] = verification_json(*facts.verification);
  for (const auto& [name, peer] : facts.peers) result["peers"][name] = peer_json(peer);
  if (facts.alone) result["best_single_backend"] = rival_json(*facts.alone);
  for (const RunFacts::Rival& partition : facts.partitions) {
    json& entry = result["partitions"].emplace_back(rival_json(partition));
    entry["apparent_loss"] = partition.speed_up.apparent_loss();
  }
}

}  // namespace

json latency_json(const std::vector<double>& samples) {
  json result = statistics_json(samples, 1e3), list = json::array();
  for (double s : samples) list.push_back(1e3 * s);
  result["samples"] = std::move(list);
  return result;
}

json verification_json(const RunFacts::Verification& verification) {
  return {{"max_abs", verification.max_abs},
          {"max_rel", verification.max_rel},
          {"within", verification.within},
          {"uninformative", verification.uninformative}};
}

json report_json(const Model& model, const CompileReport& report, const RunFacts& facts) {
  json versions = json::object();
  for (Backend* backend : all_backends()) versions[backend->name()] = backend->traits().version;
  const Roofs roofs =
      facts.peaks ? Roofs{&*facts.peaks, model_constant_bytes(report.kernels)} : Roofs{};
  json result = {
      {"schema_version", kSchemaVersion},
      {"model", model.impl().path.filename().string()},
      {"model_sha256", model_hash(model.impl().path)},
      {"env", {{"cpu", report.processor}, {"threads", facts.threads}, {"versions", versions}}},
      {"targets", report.targets},
      {"predicted_ms", 1e3 * report.predicted_seconds},
      {"correction_ms", 1e3 * report.correction_seconds},
      {"isolated_ms", 1e3 * report.isolated_seconds},
      {"overlap_ms", 1e3 * report.overlap_seconds},
      {"lower_bound_ms", 1e3 * report.lower_bound_seconds},
      {"compile_s", facts.compile_seconds},
      {"phases_s", report.phase_seconds},
      {"estimates", estimates_json(report)},
      {"search", search_json(report)},
      {"peak_memory", memory_json(report, facts)},
      {"kernels", kernels_json(report.kernels, roofs)},
      {"conversions", conversions_json(report.conversions)},
      {"nodes", nodes_json(report.nodes)},
      {"edges", edges_json(report.edges)},
      {"arena", arena_json(report.arena)},
      {"considered", considered_json(report.considered)},
      {"plans", plans_json(report.covers, roofs)},
      {"covers", covers_json(report.covers)},
      {"single_backend_ms", single_backends_json(report.covers)},
      {"rejections", rejections_json(report)},
  };
  if (const HostShare host = host_share(report); !host.operators.empty())
    result["on_host"] = {
        {"target", host.host}, {"share", host.share}, {"operators", host.operators}};
  if (report.in_situ_ratio > 0)
    result["in_situ"] = {{"ms", 1e3 * report.in_situ_seconds}, {"ratio", report.in_situ_ratio}};
  add_run_facts(result, facts);
  return result;
}

}  // namespace collage
