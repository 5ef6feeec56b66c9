#include "dynamic/dynamic_graph.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "dynamic/foreign.h"
#include "dynamic/host/host_operators.h"
#include "dynamic/loops.h"
#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/staged/control_flow.h"
#include "runtime/run_number.h"

namespace collage {

using frontend::FlatNode;
using frontend::ImportedStage;
using frontend::Lateness;
using frontend::LateNode;
using frontend::RemainingGraph;

namespace {

bool gives(const FlatNode& node, const std::string& name) {
  const auto& outputs = node.proto->output();
  return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
}

// That has a name: whoever is run is read.
std::string first_output(const FlatNode& node) {
  const auto& outputs = node.proto->output();
  const auto named = std::find_if(outputs.begin(), outputs.end(),
                                  [](const std::string& name) { return !name.empty(); });
  return named == outputs.end() ? node.label : *named;
}

}  // namespace

struct DynamicGraph::Specialisation {
  TensorConditions conditions;
  ImportedStage imported;
  std::string key;                        // of its function, where there are several stages
  std::unique_ptr<StageProgram> program;  // null: nothing is computed
  std::optional<ListedInfo> listed;
  size_t last_run = 0;
  // What follows, by the branches that its conditions took.
  std::map<std::string, std::unique_ptr<Stage>> next;
  bool is_worth_compiling() const { return program != nullptr && program->is_worth_compiling(); }
};

struct DynamicGraph::Stage {
  RemainingGraph rest;
  std::vector<std::string> reads;  // of `rest`
  std::string name;
  size_t depth = 0, runs = 0;
  bool quick = false;  // behind a specialisation that is
  std::vector<std::unique_ptr<Specialisation>> made;
};

struct DynamicGraph::LoopBody {
  std::unique_ptr<DynamicGraph> graph;
  const ::onnx::GraphProto* proto = nullptr;
  std::vector<std::string> inputs, captured;
};

// The late nodes that were run, and which way conditions went.
struct DynamicGraph::HostRun {
  std::vector<bool> done;
  std::map<size_t, bool> branches;  // of late nodes that are conditions
  std::string key() const {
    std::string text;
    for (const auto& [node, taken] : branches)
      text += fmt::format("{}{};", node, taken ? "+" : "-");
    return text;
  }
};

DynamicGraph::DynamicGraph(StageContext& context, RemainingGraph graph, std::string name,
                           size_t depth)
    : context_(context), name_(std::move(name)), first_(std::make_unique<Stage>()) {
  first_->rest = std::move(graph);
  first_->name = name_;
  first_->depth = depth;
}
DynamicGraph::~DynamicGraph() = default;

bool DynamicGraph::is_known(const std::string& name, const TensorsByName& tensors) const {
  return tensors.count(name) != 0 || context_.model->has_initializer(name);
}

Result<Tensor> DynamicGraph::find(const std::string& name, const TensorsByName& tensors) const {
  auto it = tensors.find(name);
  if (it != tensors.end()) return it->second;
  if (!context_.model->has_initializer(name))
    return internal_error("{}: '{}' was not computed", name_, name);
  return context_.model->initializer(name);
}

StageCare DynamicGraph::care_of(const Stage& stage) const {
  const bool is_first = std::none_of(stage.made.begin(), stage.made.end(), [](const auto& made) {
    return made->listed && !made->listed->info().interpreted;
  });
  if (stage.depth == 0)
    return is_first || context_.measures ? StageCare::kAsAsked : StageCare::kKnown;
  // Its shapes change from run to run.
  return is_first && !stage.quick ? StageCare::kAsAsked : StageCare::kQuick;
}

Result<std::unique_ptr<DynamicGraph::Specialisation>> DynamicGraph::make(
    Stage& stage, const TensorsByName& tensors, bool many_runs) {
  auto made = std::make_unique<Specialisation>();
  while (true) {
    made->imported = TRY(context_.model->import(stage.rest, tensors));
    // Values that are wanted and known already need no further stage.
    bool again = false;
    for (const LateNode& late : made->imported.late)
      for (const std::string& name : late.wanted)
        if (tensors.count(name) != 0) again |= stage.rest.by_value.insert(name).second;
    if (!again) break;
  }
  for (const std::string& name : made->imported.reads) {
    const Tensor& tensor = tensors.at(name);
    TensorCondition condition{{tensor.shape(), tensor.dtype()}, {}};
    if (stage.rest.by_value.count(name) != 0) condition.value = tensor.clone();
    made->conditions.emplace(name, std::move(condition));
  }
  if (!made->imported.module) return made;
  SpecialisationInfo info;
  info.part = stage.name;
  info.shapes = shapes_text(made->conditions);
  if (stage.depth > 0 || !made->imported.late.empty() || context_.saved != nullptr)
    made->key = stage_key(*made->imported.module);
  made->program =
      TRY(make_stage_program(made->imported, made->key, care_of(stage), many_runs, context_, info));
  made->imported.module.reset();
  // A model of one stage is imported again only for other shapes.
  if (stage.depth == 0 && made->imported.late.empty() && !info.interpreted)
    context_.model->forget_initializers();
  made->listed.emplace(context_, std::move(info));
  return made;
}

Result<DynamicGraph::Specialisation*> DynamicGraph::specialise(Stage& stage,
                                                               const TensorsByName& tensors) {
  ++stage.runs;
  auto found = std::find_if(stage.made.begin(), stage.made.end(),
                            [&](const auto& made) { return hold(made->conditions, tensors); });
  const bool again = found != stage.made.end() && context_.measures && stage.depth == 0 &&
                     (*found)->listed && (*found)->listed->info().quick;
  const bool worth_compiling = found != stage.made.end() && (*found)->is_worth_compiling();
  if (again || worth_compiling) {
    auto made = TRY(make(stage, tensors, worth_compiling));
    if (worth_compiling) made->next = std::move((*found)->next);
    *found = std::move(made);
  } else if (found == stage.made.end()) {
    auto made = TRY(make(stage, tensors, false));
    if (stage.made.size() >= kMaxSpecialisations)
      stage.made.erase(
          std::min_element(stage.made.begin(), stage.made.end(),
                           [](const auto& a, const auto& b) { return a->last_run < b->last_run; }));
    stage.made.push_back(std::move(made));
    found = stage.made.end() - 1;
  }
  (*found)->last_run = stage.runs;
  return found->get();
}

Status DynamicGraph::run_stage(Specialisation& stage, TensorsByName& tensors) const {
  for (const auto& [name, value] : stage.imported.constants) tensors[name] = value;
  for (const auto& [name, input] : stage.imported.aliases) tensors[name] = tensors.at(input);
  if (stage.program == nullptr) return {};
  std::vector<Tensor> inputs;
  for (const std::string& name : stage.imported.inputs) inputs.push_back(tensors.at(name));
  const RunNumber number(runs_ - 1);
  std::vector<Tensor> outputs = TRY(stage.program->run(inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    tensors[stage.imported.outputs[i]] = std::move(outputs[i]);
  ++stage.listed->info().runs;
  return {};
}

Result<DynamicGraph::LoopBody*> DynamicGraph::body_of(const FlatNode& node) {
  std::unique_ptr<LoopBody>& body = bodies_[first_output(node)];
  if (body != nullptr) return body.get();
  auto made = std::make_unique<LoopBody>();
  made->proto = TRY(frontend::graph_attribute(*node.proto, "body"));
  RemainingGraph graph = TRY(context_.model->graph_inside(node, "body", made->inputs));
  const std::set<std::string> own(made->inputs.begin(), made->inputs.end());
  for (const std::string& name : graph.reads()) {
    const bool inside = own.count(name) != 0 || graph.constants.count(name) != 0 ||
                        std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const FlatNode& inner) { return gives(inner, name); });
    if (!inside && !context_.model->has_initializer(name)) made->captured.push_back(name);
  }
  made->graph = std::make_unique<DynamicGraph>(
      context_, std::move(graph),
      fmt::format("{}/{} '{}'", name_, node.proto->op_type() == "Loop" ? "loop" : "scan",
                  node.label),
      1);
  body = std::move(made);
  return body.get();
}

Status DynamicGraph::run_on_host(const FlatNode& node, TensorsByName& tensors) {
  std::vector<Tensor> inputs;
  for (const std::string& name : node.proto->input())
    inputs.push_back(name.empty() ? Tensor() : TRY(find(name, tensors)));
  std::vector<Tensor> outputs;
  if (frontend::is_control_flow(*node.proto)) {
    LoopBody* body = TRY(body_of(node));
    TensorsByName around;
    for (const std::string& name : body->captured) around[name] = tensors.at(name);
    const RunBody run = [&](std::vector<Tensor> given) -> Result<std::vector<Tensor>> {
      TensorsByName inside = around;
      for (size_t i = 0; i < given.size(); ++i) inside[body->inputs[i]] = std::move(given[i]);
      return body->graph->run(std::move(inside));
    };
    outputs =
        TRY(node.proto->op_type() == "Loop" ? run_loop(*body->proto, inputs, run)
                                            : run_scan(*node.proto, *body->proto, inputs, run));
  } else if (auto given = context_.operators.find(frontend::qualified_op(*node.proto));
             given != context_.operators.end()) {
    outputs = TRY(call_foreign(given->second, *node.proto, node.label, inputs));
  } else {
    outputs = TRY(dynamic::run_host_operator(*node.proto, node.opset, inputs));
  }
  for (int i = 0; i < node.proto->output_size(); ++i)
    if (const size_t k = static_cast<size_t>(i); !node.proto->output(i).empty())
      tensors[node.proto->output(i)] = outputs.at(k);
  return {};
}

Result<DynamicGraph::HostRun> DynamicGraph::run_late_nodes(const Specialisation& made,
                                                           TensorsByName& tensors) {
  HostRun host;
  const std::vector<LateNode>& late = made.imported.late;
  host.done.resize(late.size(), false);
  for (size_t i = 0; i < late.size(); ++i) {
    const FlatNode& node = late[i].node;
    const bool control = frontend::is_control_flow(*node.proto);
    if (!control && !context_.model->runs_on_host(*node.proto)) continue;
    const bool is_if = control && node.proto->op_type() == "If";
    const auto known = [&](const std::string& name) {
      return name.empty() || is_known(name, tensors);
    };
    if (is_if) {
      // Its graphs may read what does not exist yet: their nodes wait for it by themselves.
      if (node.proto->input_size() != 1 || !known(node.proto->input(0))) continue;
      const Tensor condition = TRY(find(node.proto->input(0), tensors));
      host.branches[i] =
          TRY(frontend::scalar_value(condition, "the condition").with_context(describe(node))) != 0;
      host.done[i] = true;
      continue;
    }
    const std::vector<const std::string*> reads = frontend::used_names(*node.proto);
    if (!std::all_of(reads.begin(), reads.end(),
                     [&](const std::string* name) { return known(*name); }))
      continue;
    TRY(run_on_host(node, tensors).with_context(describe(node)));
    host.done[i] = true;
  }
  return host;
}

Result<std::unique_ptr<DynamicGraph::Stage>> DynamicGraph::stage_after(const Stage& stage,
                                                                       const Specialisation& made,
                                                                       const HostRun& host) {
  auto next = std::make_unique<Stage>();
  next->depth = stage.depth + 1;
  next->quick = stage.quick || (made.listed && made.listed->info().quick);
  next->name = fmt::format("{}/{}", name_, next->depth);
  RemainingGraph& rest = next->rest;
  rest.outputs = stage.rest.outputs;
  rest.by_value = stage.rest.by_value;
  for (size_t i = 0; i < made.imported.late.size(); ++i) {
    const LateNode& late = made.imported.late[i];
    rest.by_value.insert(late.wanted.begin(), late.wanted.end());
    auto branch = host.branches.find(i);
    if (branch != host.branches.end()) {
      std::vector<std::string> inputs;
      RemainingGraph inner = TRY(context_.model->graph_inside(
          late.node, branch->second ? "then_branch" : "else_branch", inputs));
      if (static_cast<int>(inner.outputs.size()) != late.node.proto->output_size())
        return Status(bad_model("a branch has {} outputs, the node {}", inner.outputs.size(),
                                late.node.proto->output_size()))
            .with_context(describe(late.node));
      rest.constants.merge(inner.constants);
      for (FlatNode& node : inner.nodes) rest.nodes.push_back(std::move(node));
      for (size_t k = 0; k < inner.outputs.size(); ++k)
        if (const std::string& name = late.node.proto->output(static_cast<int>(k)); !name.empty())
          rest.nodes.push_back(frontend::identity_node(inner.outputs[k], name, late.node));
    } else if (!host.done[i]) {
      rest.nodes.push_back(late.node);
    }
  }
  const bool moved = rest.nodes.size() != stage.rest.nodes.size() ||
                     rest.by_value != stage.rest.by_value || !host.branches.empty();
  if (!moved) return internal_error("{}: nothing more can be run", next->name);
  next->reads = rest.reads();
  for (const TensorsByName* from : {&stage.rest.constants, &made.imported.constants})
    for (const auto& [name, value] : *from)
      if (std::binary_search(next->reads.begin(), next->reads.end(), name))
        rest.constants[name] = value;
  return next;
}

const std::vector<std::string>& DynamicGraph::outputs() const { return first_->rest.outputs; }

Result<std::vector<CompiledForShapes>> DynamicGraph::compiled() const {
  if (first_->made.empty()) return usage_error("nothing was compiled: prepare shapes first");
  std::vector<CompiledForShapes> result;
  for (const std::unique_ptr<Specialisation>& made : first_->made) {
    const ImportedStage& stage = made->imported;
    CompiledForShapes compiled{
        {"", made->conditions, stage.inputs, stage.outputs, stage.aliases, {}}, nullptr};
    TensorsByName known = stage.constants;
    known.insert(first_->rest.constants.begin(), first_->rest.constants.end());
    for (const std::string& name : outputs())
      if (is_known(name, known)) compiled.names.constants[name] = TRY(find(name, known));
    if (made->program != nullptr)
      compiled.plan = TRY(made->program->plan().with_context(shapes_text(made->conditions)));
    result.push_back(std::move(compiled));
  }
  return result;
}

bool DynamicGraph::has_stages() const {
  return std::any_of(first_->made.begin(), first_->made.end(),
                     [](const auto& made) { return !made->imported.late.empty(); });
}

Status DynamicGraph::add_plans(std::map<std::string, std::shared_ptr<const Plan>>& plans) const {
  for (const auto& [loop, body] : bodies_)
    if (body != nullptr) TRY(body->graph->add_plans(plans));
  return add_plans(*first_, plans);
}

Status DynamicGraph::add_plans(const Stage& stage,
                               std::map<std::string, std::shared_ptr<const Plan>>& plans) const {
  for (const std::unique_ptr<Specialisation>& made : stage.made) {
    if (made->program != nullptr && !made->key.empty() && !made->listed->info().interpreted)
      plans[made->key] = TRY(made->program->plan());
    for (const auto& [branches, next] : made->next) TRY(add_plans(*next, plans));
  }
  return {};
}

Result<std::vector<Tensor>> DynamicGraph::run(TensorsByName tensors) {
  ++runs_;
  Stage* stage = first_.get();
  Specialisation* made = nullptr;
  while (true) {
    for (const auto& [name, value] : stage->rest.constants) tensors.erase(name);
    made = TRY(specialise(*stage, tensors));
    for (const auto& [name, value] : stage->rest.constants) tensors[name] = value;
    TRY(run_stage(*made, tensors));
    if (made->imported.late.empty()) break;
    const HostRun host = TRY(run_late_nodes(*made, tensors));
    std::unique_ptr<Stage>& next = made->next[host.key()];
    if (next == nullptr) next = TRY(stage_after(*stage, *made, host));
    stage = next.get();
    std::erase_if(tensors, [&](const auto& entry) {
      return !std::binary_search(stage->reads.begin(), stage->reads.end(), entry.first);
    });
  }
  std::vector<Tensor> outputs;
  for (const std::string& name : first_->rest.outputs) {
    Tensor value = TRY(find(name, tensors));
    // What every run gives is ours.
    const bool constant = context_.model->has_initializer(name) ||
                          stage->rest.constants.count(name) != 0 ||
                          made->imported.constants.count(name) != 0;
    outputs.push_back(constant ? value.clone() : std::move(value));
  }
  return outputs;
}

}  // namespace collage
