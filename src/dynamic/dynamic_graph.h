// A graph that is run in stages: the model's own, or the body of a loop. It keeps every stage that
// it compiled, by the shapes of the tensors that the stage reads, and the contents of those that
// decide shapes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artifact/bucketing/tensor_conditions.h"
#include "artifact/specialisations.h"
#include "base/result.h"
#include "dynamic/stage_program.h"
#include "frontend/onnx/staged/stages.h"

namespace collage {

class DynamicGraph {
 public:
  // `name` is for reports. `depth`: the number of stages before it (a loop's body has some).
  DynamicGraph(StageContext& context, frontend::RemainingGraph graph, std::string name,
               size_t depth = 0);
  ~DynamicGraph();

  // Returns the graph's outputs, in order, from its inputs and what it reads of the graph around
  // it.
  Result<std::vector<Tensor>> run(TensorsByName tensors);
  const std::vector<std::string>& outputs() const;
  // Returns what was compiled so far, to be saved; the graph has one stage. kUsage: nothing was
  // compiled.
  Result<std::vector<CompiledForShapes>> compiled() const;
  // Returns whether anything runs between two stages of what was run so far.
  bool has_stages() const;
  // Adds the plans of all stages compiled so far, by their keys (stage_program.h); loops' bodies
  // too.
  Status add_plans(std::map<std::string, std::shared_ptr<const Plan>>& plans) const;

 private:
  struct Specialisation;
  struct Stage;
  struct LoopBody;
  struct HostRun;

  Status add_plans(const Stage& stage,
                   std::map<std::string, std::shared_ptr<const Plan>>& plans) const;
  Result<Specialisation*> specialise(Stage& stage, const TensorsByName& tensors);
  StageCare care_of(const Stage& stage) const;
  Result<std::unique_ptr<Specialisation>> make(Stage& stage, const TensorsByName& tensors,
                                               bool many_runs);
  Status run_stage(Specialisation& stage, TensorsByName& tensors) const;
  Result<HostRun> run_late_nodes(const Specialisation& made, TensorsByName& tensors);
  Result<std::unique_ptr<Stage>> stage_after(const Stage& stage, const Specialisation& made,
                                             const HostRun& host);
  Status run_on_host(const frontend::FlatNode& node, TensorsByName& tensors);
  Result<LoopBody*> body_of(const frontend::FlatNode& node);
  // Returns whether the value exists: a tensor of this run, or an initializer.
  bool is_known(const std::string& name, const TensorsByName& tensors) const;
  Result<Tensor> find(const std::string& name, const TensorsByName& tensors) const;

  StageContext& context_;
  std::string name_;
  std::unique_ptr<Stage> first_;
  uint64_t runs_ = 0;  // that were begun; a loop's body has one an iteration
  std::map<std::string, std::unique_ptr<LoopBody>> bodies_;  // by the loop's first output
};

}  // namespace collage
