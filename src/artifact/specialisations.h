// The specialisations of a dynamic program in a file: an entry that states the program's inputs and
// outputs and which plan serves which shapes, and the plans, which share constants and objects.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact_file.h"
#include "artifact/bucketing/bucketed_run.h"
#include "artifact/bucketing/tensor_conditions.h"
#include "artifact/saved_plan.h"
#include "artifact/write_artifact.h"
#include "frontend/script/parts.h"

namespace collage {

// The plan for shapes that satisfy the conditions, by the tensors' names in the model; or for a
// part of a module that counts sizes (frontend/script/parts.h), by its key.
struct PlanForShapes {
  std::string part;
  TensorConditions conditions;
  std::vector<std::string> inputs, outputs;    // of the plan, in its order
  std::map<std::string, std::string> aliases;  // results that are an input under another name
  TensorsByName constants;                     // results that are the same in every run
};

struct CompiledForShapes {
  PlanForShapes names;
  std::shared_ptr<const Plan> plan;  // null: there is nothing to compute
};

struct CompiledSpecialisations {
  BucketedInterface interface;
  std::vector<std::string> results;  // the outputs, and after them what is added to each state
  std::vector<CompiledForShapes> specialisations;
  std::shared_ptr<const tensor_program::ModuleParts> parts;  // null: it counts no sizes
};

// kUnsupported, naming the step and its target: a kernel cannot be saved.
Status write_artifact(const std::filesystem::path& path, const CompiledSpecialisations& program,
                      const PlanFacts& facts);

// The specialisations of a file. Any thread may use it.
class LoadedSpecialisations {
 public:
  // kUnavailable and kBadModel as of load_artifact; kUsage: the file holds one plan.
  static Result<std::shared_ptr<LoadedSpecialisations>> load(std::shared_ptr<ArtifactFile> file);

  const BucketedInterface& interface() const { return table_.interface; }
  const std::vector<std::string>& results() const { return table_.results; }
  const std::vector<PlanForShapes>& specialisations() const { return table_.specialisations; }
  const std::shared_ptr<const tensor_program::ModuleParts>& parts() const { return table_.parts; }
  int threads() const { return file_->threads(); }
  // Returns the number of the specialisation that serves these inputs; kUnavailable: none does.
  Result<size_t> find(const TensorsByName& inputs) const;
  // Returns the number of that for a part; none: it is interpreted.
  std::optional<size_t> find_part(const std::string& key) const;
  // Returns its plan, loaded when it is first needed; null if there is nothing to compute.
  Result<std::shared_ptr<const Plan>> plan(size_t number);

 private:
  struct Table {
    BucketedInterface interface;
    std::vector<std::string> results;
    std::vector<PlanForShapes> specialisations;
    std::vector<std::string> entries;  // of their plans; empty if there is no plan
    std::shared_ptr<const tensor_program::ModuleParts> parts;
  };
  LoadedSpecialisations(std::shared_ptr<ArtifactFile> file, Table table)
      : file_(std::move(file)), table_(std::move(table)), plans_(table_.specialisations.size()) {}
  static Result<Table> read(ArtifactFile& file);

  const std::shared_ptr<ArtifactFile> file_;
  const Table table_;
  std::mutex loading_;
  std::vector<std::shared_ptr<const Plan>> plans_;
};

}  // namespace collage
