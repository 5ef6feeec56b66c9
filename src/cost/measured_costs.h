// MeasuredCosts: the answers the search needs, from the database where they are known, measured by
// a worker where they are not, and stored at once.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "cost/cost_keys.h"
#include "cost/database.h"
#include "cost/estimator.h"
#include "cost/row_values.h"
#include "cost/scaled_bounds.h"
#include "measure/worker.h"

namespace collage {

struct CostOptions {
  CompileOptions compile;
  std::vector<std::string> worker_command;
  Effort effort = Effort::kDefault;
  bool frozen = false;  // a miss is an error (kFrozenCosts)
  WorkerLimits limits = WorkerLimits::from_environment();
  CacheState cache = CacheState::kStreaming;
  // The backends that convert between encodings, beside the host; empty: every backend.
  std::set<std::string> converters = {};
};

struct CostCounts {
  int measured = 0, cached = 0, invalid = 0;  // functions and conversions; variants found invalid
  int disturbed = 0;                          // of those measured: while the machine was busy
  int tried = 0;                              // functions and conversions, without timing them
  int crashed = 0, silent = 0, out_of_memory = 0;  // of those invalid, what ended their worker
  int lacking = 0;  // of those invalid: for what else the machine lacked
};

// Functions that a worker does not have (tensor_program/external_call.h) are not measured: the
// variants that their targets list stay of unknown cost, and no row of theirs is kept.
// What only tries is in tried_costs.cc, conversions in conversion_costs.cc, what a schedule search
// asks in searched_costs.cc, what no worker is asked about in unmeasured_costs.cc.
class MeasuredCosts : public CostEstimator {
 public:
  MeasuredCosts(CostDatabase& database, CostOptions options);

  // Costs of one function on each of the targets (in that order). Functions that differ only in
  // names or in large weights share an answer. After an interrupt (base/interrupt.h) nothing is
  // measured any more: what is not known is refused, on the host of unknown cost. Variants that
  // need RoundingLimit::kAny have rows of their own.
  Result<std::vector<TargetCosts>> function_costs(const Function& function,
                                                  const std::vector<Target>& targets,
                                                  RoundingLimit rounding = RoundingLimit::kDefault);
  // Of several functions, which are timed together, as many as fit the memory.
  struct FunctionQuestion {
    Function function;
    std::vector<Target> targets;
  };
  Result<std::vector<std::vector<TargetCosts>>> function_costs(
      const std::vector<FunctionQuestion>& questions,
      RoundingLimit rounding = RoundingLimit::kDefault);
  // The same without measuring: where the costs are not known, the variants that the target offers,
  // of unknown cost. They are kept as rows of trials.
  Result<std::vector<std::vector<TargetCosts>>> offers(
      const std::vector<FunctionQuestion>& questions);
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override;
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override;
  bool only_knows() const override { return options_.frozen; }
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override;
  double conversion_estimate(const TensorType& type, const Encoding& from,
                             const Encoding& to) const override;

  // Times a variant of which this object measured a block once more, at another moment: that is a
  // block of its figure too. What an earlier process measured is left as it is. What the variant
  // costs now; Invalid where it fails this time, none where nothing was timed.
  Result<std::optional<Cost>> add_block(const Function& function, const Target& target,
                                        const Variant& variant) {
    return TRY(add_blocks({{function, target, variant}})).at(0);
  }
  // Likewise of several, timed together.
  Result<std::vector<std::optional<Cost>>> add_blocks(const std::vector<KernelQuestion>& kernels);

  // Times these variants of one target together, whether or not it lists them (searched_costs.cc).
  // What is found is not kept; none after an interrupt.
  Result<std::optional<TargetCosts>> time_variants(const Function& function, const Target& target,
                                                   const std::vector<Variant>& variants,
                                                   Effort effort);
  // Keeps the costs of a variant that was found so, and that there has been a search. `found` may
  // be none.
  Status end_schedule_search(const Function& function, const Target& target,
                             const std::optional<MeasuredVariant>& found);
  // Whether there has been one, for this build of the target.
  bool were_schedules_searched(const Function& function, const Target& target);
  // Whether that is the variant that it found.
  bool was_searched_for(const Function& function, const Target& target, const Variant& variant);

  // The same without timing anything: what is known, however little care it took, else variants are
  // tried, in their order, until one computes right; that one has `tried` set and an unknown cost.
  // With `wanted`, that variant is tried if it was not yet. What is found is stored too.
  Result<TargetCosts> tried_function(const Function& function, const Target& target,
                                     const Variant* wanted = nullptr);
  // Functions, each on a target, as tried_function, in as many workers as the program has threads:
  // what is stored of them that one finds. Where something fails it meets that itself. `done` hears
  // how many are, on the calling thread.
  struct Trial {
    Function function;
    Target target;
  };
  void try_ahead(const std::vector<Trial>& trials, const std::function<void(size_t)>& done);
  // Likewise: the first backend whose conversion is right, of unknown cost.
  Result<ConversionRow> tried_conversion(const TensorType& type, const Encoding& from,
                                         const Encoding& to);
  std::optional<ConversionRow> known_or_tried_conversion(const TensorType& type,
                                                         const Encoding& from, const Encoding& to);

  // On how many of the targets function_costs would have to measure a function of that canonical
  // text.
  size_t count_unknown(const std::string& text, const std::vector<Target>& targets,
                       RoundingLimit rounding = RoundingLimit::kDefault);
  bool is_known(const Function& function, const Target& target);  // likewise of one
  // Whether offers() would have to ask the target of a function with that canonical text.
  bool is_offer_known(const Function& function, const std::string& text, const Target& target);
  bool is_frozen() const { return options_.frozen; }
  // The error of a frozen database that lacks it.
  static Status frozen_miss(const std::string& text, const Target& target);
  // What measuring one function on one target took here on average; a guess where nothing is known.
  double seconds_per_measurement();

  const CostCounts& counts() const { return counts_; }
  // The best that was seen of the machine, by any process that used this database.
  const CoreState& usual() const { return usual_; }
  std::string program_context() const { return keys_.program_context(); }

 private:
  std::string context_of(const Target& target, RoundingLimit rounding) const {
    return keys_.function_context(target, rounding);
  }
  // The database's answer, if it was measured with enough care. With a `function`, which has that
  // text, an answer whose variants do not fit it is none.
  std::optional<TargetCosts> find_function(const std::string& text, const Target& target,
                                           bool of_any_care, RoundingLimit rounding,
                                           const Function* function = nullptr);
  // What a foreign row says: which variants there are, and what they took elsewhere.
  std::optional<TargetCosts> find_hints(const std::string& text, const Target& target,
                                        const Function* function);
  // What is known, or at least which variants there are.
  std::optional<TargetCosts> find_offer(const std::string& text, const Target& target,
                                        const Function* function = nullptr);
  Result<TargetCosts> offer(const Function& function, const std::string& text,
                            const Target& target);
  // A row of that kind: measured, or tried.
  std::optional<TargetCosts> find_costs(const std::string& kind, const std::string& text,
                                        const Target& target, RoundingLimit rounding,
                                        const Function* function = nullptr);
  // In memory alone where they are of what the machine lacked (fault.h).
  void put_costs(const std::string& kind, const std::string& text, const Target& target,
                 RoundingLimit rounding, const TargetCosts& costs);
  // Of what was silent for less than a worker may be silent now.
  bool may_end(const Invalid& invalid) const;
  std::optional<ConversionRow> find_conversion(const std::string& kind, const std::string& text);
  // Measured or, with the kind "trial", tried.
  Result<ConversionRow> ask_for_conversion(const std::string& kind, const TensorType& type,
                                           const Encoding& from, const Encoding& to);
  // What this process lists, of unknown cost.
  Result<TargetCosts> listed_here(const Function& function, const Target& target,
                                  RoundingLimit rounding) const;
  Result<TargetCosts> not_measured(const Function& function, const Target& target) const;
  // Of what is not known where nothing is measured: the host stands in for others all the same.
  Result<TargetCosts> frozen_answer(const Function& function, const std::string& text,
                                    const Target& target, RoundingLimit rounding) const;
  MeasureTask task_of(Request request, std::vector<std::string> targets) const;
  // Names what a schedule search found for that target.
  void add_searched(FunctionRequest& request, const Target& target);
  // Keeps what a worker saw of the cores in quiet moments, if that is news.
  void learn_usual(const Conditions& conditions);
  // Subjects of that text that killed a worker are not run again.
  void add_quarantine(MeasureTask& task, const std::string& text);
  void count_invalid(const TargetCosts& costs);
  Result<std::vector<TargetCosts>> run_worker(MeasureTask task, const std::string& text);
  // Keeps what killed a worker that was at a function of that text.
  void put_in_quarantine(const std::string& text, const std::string& subject, const Invalid& how);
  // The same; where the task failed, every target refuses with its reason. None after an interrupt.
  Result<std::optional<std::vector<TargetCosts>>> ask(MeasureTask task, const std::string& text);
  // Tasks of functions, timed together, as many at once as fit the memory: an answer each.
  Worker::Answers run_worker(std::vector<MeasureTask> tasks);
  // Of a row that is in the database: what a variant costs now that a worker answered once more.
  std::optional<Cost> add_to_row(const KernelQuestion& kernel, const std::string& text,
                                 TargetCosts answer);

  CostDatabase& database_;
  CostOptions options_;
  Worker worker_;
  CostKeys keys_;
  ScaledBounds bounds_;  // of kernels that nobody measured
  CoreState usual_;      // what is known of the cores in quiet moments (noise_gate.h)
  CostCounts counts_;
  std::set<std::string> measured_now_;  // context and text; by this object
};

}  // namespace collage
