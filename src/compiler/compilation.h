// Compilation: one model on its way to a plan, stage by stage. Each stage needs those before it and
// reports what it did; costs, kernels and covers live here from one stage to the next.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "compiler/choose_cover.h"
#include "compiler/compile.h"
#include "compiler/cover_search.h"
#include "compiler/targets.h"
#include "compiler/tuning_task.h"
#include "partition/config.h"

namespace collage {

class Compilation {
 public:
  // All of them must outlive it; `progress` may be null.
  Compilation(const Model& model, const ProgramOptions& options, Progress* progress,
              CompileReport& report);
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  Status gather();      // targets, and what they could take of the model
  Status open_costs();  // the database, and what measures for it
  Result<std::vector<TuningTask>> extract_tasks();  // what search() will want the costs of
  Status search();                    // costs of the candidates, and the best covers by them
  Result<CoverPrediction> predict();  // of the best cover, which is not made
  Result<Module> apply_history();     // the module, partitioned as the fastest cover known
  Status choose();                    // the fastest cover, by timing
  Status describe();                  // the report of it
  Result<Executor> make_executor();   // of it

 private:
  // Kernels of plans that are alive at the same time are shared; those of dropped plans go with
  // them.
  Result<std::shared_ptr<Kernel>> compile_kernel(const Function& function,
                                                 const KernelChoice& choice);
  Result<MeasuredCosts::Conversion> conversion(const TensorType& type, const Encoding& from,
                                               const Encoding& to);
  Result<ConversionChoice> choose_conversion(const TensorType& type, const Encoding& from,
                                             const Encoding& to);
  Result<CoverSearch> search_by_costs(std::vector<CandidatePartition> found);
  Result<CoverSearch> search_costed();  // what candidates_ cost now
  // Second looks at some covers (second_look.h); with what they change all are searched again.
  // Whether they did.
  Result<bool> look_again(const std::vector<NamedCover>& covers, int most_looks);
  Status cover_lightly();
  Result<LoweredPlan> lower_cover(const NamedCover& cover);
  Result<Module> partitioned(const NamedCover& cover) const;
  Result<ChosenCover> choose_among(const std::vector<NamedCover>& covers);
  // Among all; where none is right, among those without algorithms of larger rounding errors.
  Status choose_right();
  // The light cover; where it is wrong, the one without the kernels to blame.
  Status choose_lightly();
  Status refuse_culprits(const std::string& reason);
  void warn_of_silent_outputs();
  Status find_in_situ_ratio();
  Status refine();  // --search evolutionary
  Status lower_precision();
  void end_phase(const std::string& phase);  // less the checking in it, a phase of its own

  const Model& model_;
  const ProgramOptions& options_;
  Progress* progress_;
  CompileReport& report_;
  Stopwatch watch_;
  const Stopwatch whole_;

  TargetConstraints constraints_;
  std::vector<std::pair<std::string, std::string>> incompatible_;
  std::vector<PartitionSpecPtr> specs_;
  std::vector<std::vector<size_t>> compatible_;  // sets of specs_ that may meet in one plan
  Module module_;
  std::optional<DataflowGraph> graph_;
  std::vector<CandidatePartition> found_;
  // Where the toolchain is determined nothing is measured, unless that is asked for.
  bool light_ = false;
  VariantDemands demands_;

  CompileOptions compile_;
  std::unique_ptr<CostDatabase> database_;
  std::optional<MeasuredCosts> costs_;
  std::map<std::string, std::weak_ptr<Kernel>> kernels_;
  LoweringOptions lowering_;
  ChooseOptions choose_;
  std::optional<Judge> judge_;
  std::optional<CoverChecks> checks_;
  double checked_seconds_ = 0;                   // of the judge's, accounted for
  std::map<std::string, std::string> culprits_;  // kernels of a light cover that are wrong: why

  std::vector<CostedCandidate> candidates_;     // what a search begins with
  std::vector<std::shared_ptr<Kernel>> tried_;  // of a light cover: compiled while it was found
  CoverSearch search_;
  ChosenCover chosen_;
};

}  // namespace collage
