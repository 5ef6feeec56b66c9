// What the stages of one compilation share and none of them is about: what the user asked for, the
// cost database and who measures for it, who checks programs, kernels that are compiled already,
// and how long each phase took. None of it decides what a stage returns: that follows from the
// values it is given and from what the database knows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/dump_folder.h"
#include "base/json_fields.h"
#include "base/stopwatch.h"
#include "choose/candidates.h"
#include "choose/choose_cover.h"
#include "compiler/compile.h"
#include "compiler/stage_dump.h"
#include "cost/measured_costs.h"

namespace collage {

// Kernels of plans that are alive at the same time are shared; those of dropped plans go with them.
class KernelCache {
 public:
  // What control flow is compiled with.
  KernelCache(const ProgramOptions& options, Progress* progress)
      : options_(options), progress_(progress) {}
  Result<std::shared_ptr<Kernel>> compile(const Function& function,
                                          const CandidatePartition& partition,
                                          const Variant& variant, const CompileOptions& options);

 private:
  const ProgramOptions& options_;
  Progress* const progress_;
  std::map<std::string, std::weak_ptr<Kernel>> kernels_;
  std::vector<std::shared_ptr<Kernel>> kept_;  // of control flow: a search compiled what it runs
};

// Options by which a program is compiled for another machine, where they name one: nothing is
// measured, and targets are by default that machine's.
Result<ProgramOptions> completed(const ProgramOptions& options);

class CompileContext {
 public:
  // What is given must outlive it; `progress` may be null.
  static Result<std::unique_ptr<CompileContext>> open(const Model& model,
                                                      const ProgramOptions& options,
                                                      const Candidates& candidates,
                                                      Progress* progress);
  CompileContext(const CompileContext&) = delete;
  CompileContext& operator=(const CompileContext&) = delete;

  Result<LoweredPlan> lower_cover(const NamedCover& cover,
                                  const std::vector<CostedCandidate>& candidates);
  // For a choice among covers of these candidates, which must outlive it.
  ChooseContext choosing_among(const std::vector<CostedCandidate>& candidates);
  // The cheapest backend for a conversion, and what it costs.
  Result<ConversionRow> conversion(const TensorType& type, const Encoding& from,
                                   const Encoding& to);
  // What a stage gave, where COLLAGE_DUMP asks for it (stage_dump.h).
  template <typename Value>
  Status dump(const std::string& stage, const Value& value) {
    if (!dumps_.wants(stage)) return {};
    return write_dump(stage + ".json", json_text(to_json(value)));
  }
  // A module as text, its constants by type alone.
  Status dump_module(const std::string& stage, const Module& module);
  // As JSON, and as text.
  Status dump_plan(const Plan& plan);
  // By the user, or by who measures in the background.
  bool is_stopped() const { return collage::is_stopped(options.pace.get()); }
  // Of what was done since the last one ended, less the checking in it, a phase of its own.
  void end_phase(const std::string& phase);

  const ProgramOptions& options;
  Progress* const progress;
  const DataflowGraph& graph;
  // One toolchain is left besides the host: nothing is measured, unless that was asked for.
  const bool light;
  // A first answer is wanted before anything is measured (ProgramOptions::budget_seconds).
  const bool answers_first;
  bool tries = light || answers_first;  // conversions, rather than measuring them
  const CompileOptions compile;
  const std::string processor;  // that the program is for
  const std::unique_ptr<CostDatabase> database;
  const CacheState cache;  // in which kernels are timed
  MeasuredCosts costs;
  NoiseGate gate;  // of what this process times
  ReferenceCheck reference;
  CoverChecks checks;
  ChooseOptions choosing;
  KernelCache kernels;
  std::map<std::string, double> phase_seconds;
  const Stopwatch whole;

 private:
  struct Opened {
    CompileOptions compile;
    std::unique_ptr<CostDatabase> database;
    std::vector<std::string> worker;
    DumpFolder dumps;
    std::shared_ptr<const Machine> machine;  // null: this one
  };
  CompileContext(const Model& model, const ProgramOptions& options, const Candidates& candidates,
                 Progress* progress, Opened opened);
  Status write_dump(const std::string& name, const std::string& text);
  ChooseOptions choose_options(const Model& model);

  LoweringOptions lowering_;
  Stopwatch phase_;
  double checked_seconds_ = 0;  // of the reference check's, accounted for
  const DumpFolder dumps_;
  size_t dumped_ = 0;
};

}  // namespace collage
