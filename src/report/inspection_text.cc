// An inspection as text and as JSON.
#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/percent.h"
#include "report/inspection.h"

namespace collage {

using nlohmann::json;

namespace {

std::string dims_text(const std::vector<std::string>& dims) {
  std::string text;
  for (const std::string& dim : dims) text += (text.empty() ? "" : ", ") + dim;
  return "(" + text + ")";
}

std::string share_text(double part, double all) {
  return all > 0 ? fmt::format("{:.1f}%", 100 * part / all) : "0.0%";
}

std::vector<std::pair<std::string, Inspection::Work>> by_flops(
    const std::map<std::string, Inspection::Work>& operators) {
  std::vector<std::pair<std::string, Inspection::Work>> rows(operators.begin(), operators.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.flops > b.second.flops; });
  return rows;
}

std::string counts_text(const std::map<std::string, Inspection::Work>& operators) {
  std::string text;
  for (const auto& [op, work] : by_flops(operators))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", op, work.nodes);
  return text;
}

std::string file_text(const Inspection& inspection) {
  if (!inspection.file) return inspection.model + "  Relay text\n";
  const ModelSummary& file = *inspection.file;
  size_t nodes = 0;
  std::string operators;
  for (const auto& [op, count] : file.op_counts) {
    nodes += count;
    operators += fmt::format("{}{} {}", operators.empty() ? "" : ", ", op, count);
  }
  std::string text =
      fmt::format("{}  opset {}, IR version {}, {} nodes{}\n", inspection.model, file.opset,
                  file.ir_version, nodes, file.producer.empty() ? "" : ", by " + file.producer);
  for (const ModelInput& input : file.inputs)
    text += fmt::format("input   {} {} {}\n", input.name, dtype_name(input.dtype),
                        input.has_shape ? dims_text(input.dims) : "of any rank");
  for (const std::string& output : file.outputs) text += fmt::format("output  {}\n", output);
  for (const std::string& flag : inspection.open)
    text += fmt::format("open    taken as {}\n", flag);
  return text + fmt::format("operators of the file: {}\n", operators);
}

std::string graph_text(const Inspection& inspection) {
  std::string text = "\nas Collage sees it\n";
  for (const TensorInfo& info : inspection.inputs)
    text += fmt::format("  input   {} {} {}\n", info.name, dtype_name(info.dtype),
                        shape_to_string(info.shape));
  for (const TensorInfo& info : inspection.outputs)
    text += fmt::format("  output  {} {} {}\n", info.name, dtype_name(info.dtype),
                        shape_to_string(info.shape));
  for (const auto& [op, work] : by_flops(inspection.operators))
    text += fmt::format("  {:<24} {:5} {:>7} of the arithmetic\n", op, work.nodes,
                        share_text(work.flops, inspection.all.flops));
  text += "\nbackends\n";
  for (const Inspection::Backend& backend : inspection.backends) {
    text += fmt::format("  {:<10} {} of {} nodes, {} of the arithmetic, {} candidates\n",
                        backend.target, backend.all.nodes, inspection.all.nodes,
                        share_text(backend.all.flops, inspection.all.flops), backend.candidates);
    if (!backend.operators.empty())
      text += fmt::format("  {:<10} {}\n", "", counts_text(backend.operators));
  }
  return text;
}

// Every node, those of equal backend and reason in one line; those that a backend takes none of are
// not named one by one.
std::string unsupported_text(const Inspection& inspection) {
  if (inspection.unsupported.empty()) return "";
  std::map<std::string, std::vector<std::string>> groups;  // by backend and reason
  for (const Inspection::Unsupported& row : inspection.unsupported)
    groups[row.backend + ": " + row.reason].push_back(fmt::format("{} ({})", row.node, row.op));
  std::string text = "\nnot taken, by backend and reason\n";
  for (const auto& [why, nodes] : groups) {
    const bool all = nodes.size() > 1 && nodes.size() == inspection.all.nodes;
    text += fmt::format("  {}\n      {}\n", why,
                        all ? fmt::format("all {} nodes", nodes.size())
                            : fmt::format("{}", fmt::join(nodes, ", ")));
  }
  return text;
}

std::string host_text(const Inspection& inspection) {
  if (inspection.on_host.empty())
    return fmt::format("\nnothing has to run on {}\n", inspection.host);
  return fmt::format("\non {}, which is slow: {}: {} of the arithmetic\n", inspection.host,
                     counts_text(inspection.on_host), percent_text(inspection.host_share));
}

json to_json(const std::map<std::string, Inspection::Work>& operators) {
  json result = json::object();
  for (const auto& [op, work] : operators)
    result[op] = {{"nodes", work.nodes}, {"flops", work.flops}};
  return result;
}

json to_json(const std::vector<TensorInfo>& infos) {
  json result = json::array();
  for (const TensorInfo& info : infos)
    result.push_back(
        {{"name", info.name}, {"dtype", dtype_name(info.dtype)}, {"shape", info.shape}});
  return result;
}

json to_json(const ModelSummary& file) {
  json inputs = json::array();
  for (const ModelInput& input : file.inputs) {
    json entry = {{"name", input.name}, {"dtype", dtype_name(input.dtype)}};
    if (input.has_shape) entry["dims"] = input.dims;
    inputs.push_back(std::move(entry));
  }
  return {{"opset", file.opset},       {"ir_version", file.ir_version},
          {"producer", file.producer}, {"inputs", std::move(inputs)},
          {"outputs", file.outputs},   {"operators", file.op_counts}};
}

}  // namespace

std::string to_text(const Inspection& inspection) {
  std::string text = file_text(inspection);
  if (inspection.status.ok()) text += graph_text(inspection);
  text += unsupported_text(inspection);
  if (inspection.status.ok()) text += host_text(inspection);
  return text;
}

json to_json(const Inspection& inspection) {
  json unsupported = json::array();
  for (const Inspection::Unsupported& row : inspection.unsupported)
    unsupported.push_back(
        {{"node", row.node}, {"op", row.op}, {"backend", row.backend}, {"reason", row.reason}});
  json result = {{"model", inspection.model},
                 {"supported", inspection.status.ok()},
                 {"assumed", inspection.open},
                 {"unsupported", std::move(unsupported)}};
  if (inspection.file) result["file"] = to_json(*inspection.file);
  if (!inspection.status.ok()) return result;
  json backends = json::array();
  for (const Inspection::Backend& backend : inspection.backends)
    backends.push_back({{"target", backend.target},
                        {"candidates", backend.candidates},
                        {"nodes", backend.all.nodes},
                        {"flops", backend.all.flops},
                        {"operators", to_json(backend.operators)}});
  result["inputs"] = to_json(inspection.inputs);
  result["outputs"] = to_json(inspection.outputs);
  result["nodes"] = inspection.all.nodes;
  result["flops"] = inspection.all.flops;
  result["operators"] = to_json(inspection.operators);
  result["backends"] = std::move(backends);
  result["reference"] = {{"operators", to_json(inspection.on_host)},
                         {"share", inspection.host_share}};
  return result;
}

}  // namespace collage
