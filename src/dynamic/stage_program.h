// A stage of a model (frontend/onnx/staged/stages.h) made ready to run: compiled, or interpreted if
// it is too little work for that, as loop conditions and the arithmetic of shapes are, until its
// runs together took as long as compiling.
#pragma once

#include <collage/collage.h>
#include <collage/dynamic.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "dynamic/saved_stages.h"
#include "frontend/onnx/staged/stages.h"
#include "runtime/plan.h"

namespace collage {

// State that all stages of a program share.
struct StageContext {
  std::shared_ptr<frontend::StageSource> model;
  ProgramOptions options;
  bool compile_on_demand = true;
  // Used in place of compiling, if given: computes a stage as it was imported.
  std::function<Result<std::vector<Tensor>>(const Module& stage, const std::vector<Tensor>& inputs)>
      compute;
  // Stages that a file holds, by stage_key; null if there is none.
  std::shared_ptr<SavedStages> saved;
  std::map<std::string, ForeignOperator> operators;
  Progress* progress = nullptr;
  std::vector<const SpecialisationInfo*> made;  // in the order in which they were compiled
  bool measures = false;    // costs of further specialisations of a first stage too
  std::string best_target;  // of those that could compute what was measured alone; empty: none
};

// Of one stage; the least recently used goes.
inline constexpr size_t kMaxSpecialisations = 64;

// Listed among those of the program as long as it is there.
class ListedInfo {
 public:
  ListedInfo(StageContext& context, SpecialisationInfo info)
      : context_(context), info_(std::move(info)) {
    context_.made.push_back(&info_);
  }
  ~ListedInfo() { std::erase(context_.made, &info_); }
  ListedInfo(const ListedInfo&) = delete;
  ListedInfo& operator=(const ListedInfo&) = delete;
  SpecialisationInfo& info() { return info_; }
  const SpecialisationInfo& info() const { return info_; }

 private:
  StageContext& context_;
  SpecialisationInfo info_;
};

// How much time compiling a stage may take.
enum class StageCare {
  kAsAsked,  // with the options' targets, by measured cost where there are several
  kKnown,    // likewise where all costs are known, else with the best target, without measuring
  kQuick,    // with a toolchain that compiles fast, without measuring
};

class StageProgram {
 public:
  virtual ~StageProgram() = default;
  // As the run of the number that is current (runtime/run_number.h).
  virtual Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) = 0;
  // Whether what it did until now would have been worth compiling it.
  virtual bool is_worth_compiling() const { return false; }
  // For saving.
  virtual Result<std::shared_ptr<const Plan>> plan() const = 0;
};

// Identifies what a stage computes: equal for stages of equal functions and constants.
std::string stage_key(const Module& stage);

// `key`: of a stage that a file may hold, else empty; `many_runs`: little work is worth compiling.
Result<std::unique_ptr<StageProgram>> make_stage_program(const frontend::ImportedStage& stage,
                                                         const std::string& key, StageCare care,
                                                         bool many_runs, StageContext& context,
                                                         SpecialisationInfo& info);

}  // namespace collage
