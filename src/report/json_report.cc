#include <algorithm>
#include <fstream>

#include "base/hash.h"
#include "base/statistics.h"
#include "report/report.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr int kSchemaVersion = 1;

json milliseconds(const Measured& m) {
  return {
      {"median", 1e3 * m.median}, {"p10", 1e3 * m.p10}, {"p90", 1e3 * m.p90}, {"count", m.samples}};
}

json cost_json(const Cost& cost) {
  const Measured* m = measured(cost);
  return m != nullptr ? milliseconds(*m) : json(nullptr);
}

json latency_json(const std::vector<double>& samples) {
  json list = json::array();
  for (double s : samples) list.push_back(1e3 * s);
  return {{"median", 1e3 * median(samples)},
          {"p10", 1e3 * percentile(samples, 0.1)},
          {"p90", 1e3 * percentile(samples, 0.9)},
          {"count", samples.size()},
          {"samples", list}};
}

json tensor_json(const TensorType& type, const Encoding& encoding) {
  return {{"shape", type.shape},
          {"dtype", dtype_name(encoding.dtype)},
          {"layout", encoding.layout.to_string()}};
}

json kernel_json(const ReportedKernel& kernel) {
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
    if (const auto* invalid = std::get_if<Invalid>(&other.cost)) {
      entry["reason"] = invalid->reason;
    } else {
      entry["cost_ms"] = cost_json(other.cost);
    }
    alternatives.push_back(std::move(entry));
  }
  return {{"name", kernel.name},
          {"target", kernel.target},
          {"variant", kernel.variant.to_string()},
          {"ops", ops},
          {"cost_ms", cost_json(kernel.cost)},
          {"flops", kernel.flops},
          {"bytes", kernel.bytes},
          {"inputs", inputs},
          {"outputs", outputs},
          {"alternatives", alternatives}};
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

}  // namespace

json report_json(const Model& model, const CompileReport& report, const RunFacts& facts) {
  json versions = json::object();
  for (Backend* backend : all_backends()) versions[backend->name()] = backend->version();
  json result = {
      {"schema_version", kSchemaVersion},
      {"model", model.impl().path.filename().string()},
      {"model_sha256", model_hash(model.impl().path)},
      {"env", {{"cpu", processor_name()}, {"threads", facts.threads}, {"versions", versions}}},
      {"targets", report.targets},
      {"predicted_ms", 1e3 * report.predicted_seconds},
      {"lower_bound_ms", 1e3 * report.lower_bound_seconds},
      {"compile_s", facts.compile_seconds},
      {"phases_s", report.phase_seconds},
      {"estimates",
       {{"measured", report.estimates.measured},
        {"cached", report.estimates.cached},
        {"tried", report.estimates.tried},
        {"invalid", report.estimates.invalid}}},
      {"search",
       {{"candidates", report.candidates},
        {"functions", report.functions},
        {"states", report.search_states},
        {"exact", report.exact},
        {"gap", report.gap},
        {"light", report.light},
        {"covers_timed",
         std::count_if(report.covers.begin(), report.covers.end(),
                       [](const TimedCover& c) { return c.measured.has_value(); })}}},
      {"peak_memory", {{"planned", report.arena_bytes}}},
  };
  if (!facts.samples.empty()) result["latency_ms"] = latency_json(facts.samples);
  json kernels = json::array(), conversions = json::array(), covers = json::array(),
       rejections = json::array();
  for (const ReportedKernel& kernel : report.kernels) kernels.push_back(kernel_json(kernel));
  for (const ReportedConversion& c : report.conversions)
    conversions.push_back({{"name", c.name},
                           {"shape", c.type.shape},
                           {"from", c.from.to_string()},
                           {"to", c.to.to_string()},
                           {"cost_ms", cost_json(c.cost)}});
  json singles = json::object();
  for (const TimedCover& cover : report.covers) {
    json entry = {{"name", cover.name},
                  {"single_backend", cover.single_backend},
                  {"predicted_ms", 1e3 * cover.predicted_seconds},
                  {"chosen", cover.chosen}};
    if (cover.measured) entry["measured_ms"] = milliseconds(*cover.measured);
    if (!cover.failure.empty()) entry["failure"] = cover.failure;
    if (cover.single_backend && cover.measured) singles[cover.name] = 1e3 * cover.measured->median;
    covers.push_back(std::move(entry));
  }
  for (const auto& rejection : report.rejections)
    rejections.push_back(
        {{"node", rejection.node}, {"backend", rejection.backend}, {"reason", rejection.reason}});
  result["kernels"] = std::move(kernels);
  result["conversions"] = std::move(conversions);
  result["covers"] = std::move(covers);
  result["single_backend_ms"] = std::move(singles);
  result["rejections"] = std::move(rejections);
  if (facts.verification)
    result["verification"] = {{"max_abs", facts.verification->max_abs},
                              {"max_rel", facts.verification->max_rel},
                              {"within", facts.verification->within}};
  if (!facts.peers.empty()) {
    json peers = json::object();
    for (const auto& [name, peer] : facts.peers) {
      peers[name] =
          peer.samples.empty() ? json{{"failure", peer.failure}} : latency_json(peer.samples);
      peers[name]["version"] = peer.version;
    }
    result["peers"] = std::move(peers);
  }
  return result;
}

}  // namespace collage
