#include "report/inspection.h"

#include <algorithm>

#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "choose/claims.h"
#include "frontend/script/script.h"
#include "ir/work.h"

namespace collage {

namespace {

constexpr const char* kImport = "import";

// Gives what the file leaves open the size 1, and says how to give another.
void assume_sizes(const ModelSummary& file, LoadOptions& load, std::vector<std::string>& open) {
  for (const ModelInput& input : file.inputs) {
    if (!input.has_shape || load.shapes.count(input.name) != 0 ||
        load.constants.count(input.name) != 0)
      continue;
    const bool all_named = std::all_of(input.dims.begin(), input.dims.end(), [](const auto& dim) {
      return !is_open_dimension(dim) || is_named_dimension(dim);
    });
    Shape shape;
    std::string text;
    for (const std::string& dim : input.dims) {
      const auto given = load.dims.find(dim);
      shape.push_back(!is_open_dimension(dim)    ? std::stoll(dim)
                      : given != load.dims.end() ? given->second
                                                 : 1);
      text += (text.empty() ? "" : "x") + std::to_string(shape.back());
      if (!all_named || !is_named_dimension(dim) || given != load.dims.end()) continue;
      load.dims[dim] = 1;
      open.push_back("--dim " + dim + "=1");
    }
    if (all_named) continue;
    load.shapes[input.name] = shape;
    open.push_back("--shapes " + input.name + "=" + text);
  }
}

std::string op_of(const DataflowGraph& graph, PostDfsIndex node) {
  const auto* call = as<CallNode>(graph.node(node).expr);
  return call != nullptr && call->op != nullptr ? call->op->name : "call";
}

// Its ONNX node, or its place in the graph where a pass made it.
std::string name_of(const DataflowGraph& graph, PostDfsIndex node) {
  const std::string& origin = graph.node(node).expr->origin();
  return origin.empty() ? "#" + std::to_string(node) : origin;
}

void add(Inspection::Work& work, double flops) {
  ++work.nodes;
  work.flops += flops;
}

void describe_claims(const DataflowGraph& graph, const Claims& claims, Inspection& inspection) {
  std::map<PostDfsIndex, double> flops;
  for (PostDfsIndex node : claims.kernel_nodes) {
    flops[node] = call_flops(graph.node(node).expr);
    add(inspection.operators[op_of(graph, node)], flops[node]);
    add(inspection.all, flops[node]);
  }
  for (const Claim& claim : claims.targets) {
    Inspection::Backend& backend = inspection.backends.emplace_back();
    backend.target = claim.target;
    backend.candidates = claim.candidates;
    for (PostDfsIndex node : claim.nodes) {
      add(backend.operators[op_of(graph, node)], flops[node]);
      add(backend.all, flops[node]);
    }
  }
  for (const NotClaimed& refusal : claims.refusals)
    inspection.unsupported.push_back(
        {name_of(graph, refusal.node), op_of(graph, refusal.node), refusal.target, refusal.reason});
  double on_host = 0;
  for (PostDfsIndex node : claims.on_host) {
    add(inspection.on_host[op_of(graph, node)], flops[node]);
    on_host += flops[node];
  }
  if (inspection.all.flops > 0) inspection.host_share = on_host / inspection.all.flops;
}

// What stands in the way of importing the file, and whether that is all that is wrong with it.
void describe_refusals(const std::filesystem::path& path, const LoadOptions& load,
                       Inspection& inspection) {
  std::vector<UnsupportedNode> nodes;
  const Result<ImportedModel> imported = import_onnx(path, import_options(load), &nodes);
  if (imported) return;
  for (const UnsupportedNode& node : nodes)
    inspection.unsupported.push_back({node.node, node.op, kImport, node.reason});
}

Result<Inspection> inspect(const std::filesystem::path& path, LoadOptions load,
                           const ProgramOptions& options) {
  Inspection inspection;
  inspection.model = path.filename().string();
  const bool is_text = tensor_program::is_module_text(path);
  if (!is_text) {
    inspection.file = TRY(inspect_onnx(path));
    assume_sizes(*inspection.file, load, inspection.open);
  }
  Result<Model> model = load_model(path, load);
  if (!model && model.status().code() == ErrorCode::kUnsupported && !is_text) {
    inspection.status = model.status();
    describe_refusals(path, load, inspection);
    return inspection;
  }
  if (!model && !inspection.open.empty())
    return std::move(model).status().with_context("with open dimensions taken as 1");
  inspection.inputs = TRY(model).inputs();
  inspection.outputs = model->outputs();
  const Candidates candidates = TRY(find_candidates(model->impl().module, options));
  inspection.host = candidates.specs.back()->target.to_string();
  describe_claims(*candidates.graph, TRY(find_claims(candidates, options)), inspection);
  return inspection;
}

}  // namespace

Result<Inspection> inspect_model(const std::filesystem::path& path, LoadOptions load,
                                 const ProgramOptions& options) {
  return without_exceptions([&] {
    register_all();
    return inspect(path, std::move(load), options);
  });
}

}  // namespace collage
