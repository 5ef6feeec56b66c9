#include "conformance/pipeline.h"

#include <algorithm>
#include <functional>
#include <map>

#include "backend/backend.h"
#include "choose/candidates.h"
#include "choose/cover_search.h"
#include "choose/tuning_task.h"
#include "cost/analytic.h"
#include "ir/text_printer.h"
#include "lower/lowering.h"
#include "partition/prune.h"
#include "runtime/executor.h"

namespace collage {

namespace {

// From 0.5 to 1.5, by the text.
double factor_of(const std::string& text) {
  constexpr size_t kSteps = 1000;
  return 0.5 + static_cast<double>(std::hash<std::string>()(text) % kSteps) / kSteps;
}

class MadeUpCosts : public CostEstimator {
 public:
  explicit MadeUpCosts(CompileOptions options) : options_(std::move(options)) {}

  // All that the target offers, or why it refuses.
  TargetCosts costs(const Function& function, const Target& target) {
    const std::string text = canonical_text(function);
    const std::string name = target.to_string();
    auto [known, is_new] = known_.try_emplace(name + "\n" + text);
    TargetCosts& answer = known->second;
    if (!is_new) return answer;
    answer.target = name;
    const Backend& backend = *find_backend(target.kind);
    const double host = backend.traits().is_host ? 1e3 : 1;
    Result<std::vector<Variant>> variants = backend.variants(function, target, options_);
    if (!variants) {
      answer.refusal = variants.status().to_string();
      return answer;
    }
    for (Variant& variant : *variants) {
      const double seconds =
          host * factor_of(text + name + variant.to_string()) * analytic_seconds(function);
      answer.variants.push_back({std::move(variant), Measured{seconds, seconds, seconds, 1}});
    }
    return answer;
  }

  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override {
    std::vector<TargetCosts> answers;
    for (const KernelQuestion& question : questions)
      answers.push_back(costs(question.function, question.target));
    return answers;
  }
  double kernel_estimate(const Function& function, const TargetCosts&, size_t) const override {
    return 1e3 * analytic_seconds(function);  // of the host's, until it is asked
  }
  double conversion_estimate(const TensorType& type, const Encoding& from,
                             const Encoding& to) const override {
    return factor_of(from.to_string() + to.to_string()) *
           analytic_seconds(0, static_cast<double>(type.bytes()));
  }
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override {
    const double seconds = conversion_estimate(type, from, to);
    return ConversionRow{"", Measured{seconds, seconds, seconds, 1}};
  }
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override {
    return std::move(known_conversion(type, from, to)).value();
  }

 private:
  const CompileOptions options_;
  std::map<std::string, TargetCosts> known_;
};

class CasePipeline {
 public:
  explicit CasePipeline(Candidates candidates)
      : candidates_(std::move(candidates)), costs_(compile_options()) {}

  Result<LoweredPlan> plan() {
    std::vector<CandidatePartition> kept =
        prune_dominated(*candidates_.graph, candidates_.found, pruned_);
    TRY(add(std::move(kept)));
    // A backend may refuse a kernel when it is compiled: then covers are found without it.
    constexpr int kMostRefusals = 200;
    for (int attempt = 0;; ++attempt) {
      if (has_refusals_) TRY(add(std::exchange(pruned_, {})));
      const CoverSearch found = TRY(find_covers(
          *candidates_.graph, costed_, costs_, {WantedCovers::kCheapest, kInfinity, &candidates_}));
      Result<LoweredPlan> lowered = lower_cover(found);
      if (lowered.ok() || refused_.empty() || attempt == kMostRefusals) return lowered;
      leave_out_refused();
    }
  }

  static CompileOptions compile_options() {
    CompileOptions options;
    options.threads = 1;
    return options;
  }

 private:
  Status add(std::vector<CandidatePartition> found) {
    TaskExtraction extraction(*candidates_.graph);
    for (CandidatePartition& candidate : found) {
      Function function = TRY(extraction.add(candidate)).function;
      std::shared_ptr<const TargetCosts> costs;
      if (!candidate.spec->is_host) {
        costs = std::make_shared<TargetCosts>(costs_.costs(function, candidate.spec->target));
        has_refusals_ |= costs->variants.empty();
      }
      costed_.push_back({std::move(candidate), std::move(function), std::move(costs)});
    }
    return {};
  }

  Result<LoweredPlan> lower_cover(const CoverSearch& found) {
    refused_.clear();
    LoweringOptions options;
    options.compile = compile_options();
    options.choose_conversion = [this](const TensorType& type, const Encoding& from,
                                       const Encoding& to) { return converter(type, from, to); };
    options.compile_kernel = [&](const Function& function, const CandidatePartition& partition,
                                 const Variant& variant) -> Result<std::shared_ptr<Kernel>> {
      const Target& target = partition.spec->target;
      Result<std::unique_ptr<Kernel>> kernel =
          find_backend(target.kind)->compile(function, variant, target, options.compile);
      if (!kernel) {
        refused_ = name_of(partition.sub_graph, target, variant);
        return kernel.status();
      }
      return std::shared_ptr<Kernel>(std::move(*kernel));
    };
    const NamedCover& cover = found.covers.at(0);
    return lower(problem_of(cover, *candidates_.graph, found.candidates), cover, options);
  }

  // The first target that can, the host last.
  Result<ConversionChoice> converter(const TensorType& type, const Encoding& from,
                                     const Encoding& to) {
    for (const PartitionSpecPtr& spec : candidates_.specs) {
      const Backend& backend = *find_backend(spec->target.kind);
      if (backend.compile_conversion(type, from, to, compile_options()).ok())
        return ConversionChoice{backend.name(), costs_.conversion_estimate(type, from, to)};
    }
    return unsupported("nobody converts {} to {}", from.to_string(), to.to_string());
  }

  static std::string name_of(const SubGraph& sub_graph, const Target& target,
                             const Variant& variant) {
    return sub_graph.inside().to_string() + "\n" + target.to_string() + "\n" + variant.to_string();
  }

  void leave_out_refused() {
    has_refusals_ = true;
    for (CostedCandidate& candidate : costed_) {
      if (candidate.costs == nullptr) continue;
      auto costs = std::make_shared<TargetCosts>(*candidate.costs);
      for (MeasuredVariant& row : costs->variants)
        if (name_of(candidate.partition.sub_graph, candidate.partition.spec->target, row.variant) ==
            refused_)
          row.cost = Invalid{"refused when it was compiled"};
      candidate.costs = std::move(costs);
    }
  }

  const Candidates candidates_;
  MadeUpCosts costs_;
  std::vector<CandidatePartition> pruned_;
  std::vector<CostedCandidate> costed_;
  bool has_refusals_ = false;
  std::string refused_;  // the kernel that the last lowering ended with
};

}  // namespace

Result<PipelineRun> run_through_pipeline(const Module& module,
                                         const std::vector<std::string>& targets,
                                         const std::vector<Tensor>& inputs) {
  ProgramOptions options;
  options.targets = targets;
  CasePipeline pipeline(TRY(find_candidates(module, options)));
  const LoweredPlan lowered = TRY(pipeline.plan());
  PipelineRun run;
  for (const Step& step : lowered.plan->steps) run.backends.insert(step.target);
  Executor executor = TRY(Executor::create(lowered.plan, CasePipeline::compile_options().threads));
  run.outputs.resize(lowered.plan->outputs.size());
  TRY(executor.run(inputs, run.outputs));
  return run;
}

}  // namespace collage
