// MeasuredCosts: the answers the search needs, from the store (cost_store.h) where they are known,
// measured by workers (measurer.h) where they are not, and kept at once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/cost_store.h"
#include "cost/estimator.h"
#include "cost/measurer.h"
#include "measure/pace.h"

namespace collage {

// What happens where a cost is missing.
enum class Missing {
  kMeasure,   // it is measured; with frozen costs that is an error
  kEstimate,  // it goes on at its estimate
  kExpect,    // likewise, at what it is expected to take rather than at the least it could
  kRefuse,    // it is in no cover, as where a compilation's costs are frozen; but for the host's
};

// Functions that a worker does not have (tensor_program/external_call.h) are not measured: the
// variants that their targets list stay of unknown cost, and no row of theirs is kept. After an
// interrupt (base/interrupt.h) nothing is measured any more: what is not known is refused, on the
// host of unknown cost.
class MeasuredCosts : public CostEstimator {
 public:
  MeasuredCosts(CostDatabase& database, const CostOptions& options);
  // With the same store and workers.
  MeasuredCosts(const MeasuredCosts& costs, Missing missing);

  // Costs of one function on each of the targets (in that order).
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
  // As an estimator: kernels of costs that the user gives (CostOptions::model) are tried, for
  // being right, and all others measured.
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override;
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override;
  bool only_knows() const override {
    return is_frozen() || missing_ == Missing::kRefuse || measurer_->is_over();
  }
  bool is_stopped() const { return options_.pace != nullptr && options_.pace->is_stopped(); }
  // Whether something was not measured since there was no time, or an interrupt.
  bool was_over() const { return measurer_->was_over(); }
  // Measures for at most so many seconds from now, about.
  void measure_for(double seconds) { measurer_->time_for(seconds); }
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override;
  double conversion_estimate(const TensorType& type, const Encoding& from,
                             const Encoding& to) const override;
  // Puts costs that the user gives in place of what is known of a function's kernels.
  void apply_given(const Function& function, TargetCosts& costs) const;

  // Times variants of which this object measured a block once more, at another moment, together:
  // that is a block of their figures too. What an earlier process measured is left as it is. What
  // each costs now; Invalid where it fails this time, none where nothing was timed.
  Result<std::vector<std::optional<Cost>>> add_blocks(const std::vector<KernelQuestion>& kernels);

  // Times these variants of one target together, whether or not it lists them. What is found is not
  // kept; none after an interrupt.
  Result<std::optional<TargetCosts>> time_variants(const Function& function, const Target& target,
                                                   const std::vector<Variant>& variants,
                                                   Effort effort);
  // Keeps the costs of a variant that was found so, and that there has been a search. `found` may
  // be none.
  Status end_schedule_search(const Function& function, const Target& target,
                             const std::optional<MeasuredVariant>& found);
  // What a search found, of no variants where that is nothing; none where there was no search by
  // this build of the target.
  std::optional<TargetCosts> searched_schedules(const std::string& text, const Target& target);

  // Without measuring: where the costs are not known, the variants that the target offers, of
  // unknown cost. They are kept as rows of trials.
  Result<std::vector<std::vector<TargetCosts>>> offers(
      const std::vector<FunctionQuestion>& questions);
  // Without timing: what is known, however little care it took, else variants are tried, in their
  // order, until one computes right; that one has `tried` set and an unknown cost. With `wanted`,
  // that variant is tried if it was not yet. What is found is kept too.
  Result<TargetCosts> tried_function(const Function& function, const Target& target,
                                     const Variant* wanted = nullptr);
  // Functions, each on a target, as tried_function, in as many workers as the program has threads:
  // what is kept of them that one finds. Where something fails it meets that itself. `done` hears
  // how many are, on the calling thread.
  struct Trial {
    Function function;
    Target target;
    std::optional<Variant> wanted = {};
  };
  void try_ahead(const std::vector<Trial>& trials, const std::function<void(size_t)>& done);
  // Likewise: the first backend whose conversion is right, of unknown cost.
  Result<ConversionRow> tried_conversion(const TensorType& type, const Encoding& from,
                                         const Encoding& to);
  std::optional<ConversionRow> known_or_tried_conversion(const TensorType& type,
                                                         const Encoding& from, const Encoding& to);

  // Compiles what measuring these functions, and changes of layout between them, needs, for caches
  // of code (CompileOptions::cache_folder), and runs nothing.
  struct Built {
    int functions = 0, variants = 0, refused = 0;  // refused: of these variants
    int conversions = 0;
    void operator+=(const Built& other) {
      functions += other.functions;
      variants += other.variants;
      refused += other.refused;
      conversions += other.conversions;
    }
  };
  Result<Built> build(const std::vector<FunctionQuestion>& questions, RoundingLimit rounding);

  // On how many of the targets function_costs would have to measure a function of that canonical
  // text.
  size_t count_unknown(const std::string& text, const std::vector<Target>& targets,
                       RoundingLimit rounding = RoundingLimit::kDefault);
  bool is_known(const Function& function, const Target& target);  // likewise of one
  // Whether offers() would have to ask the target of a function with that canonical text.
  bool is_offer_known(const Function& function, const std::string& text, const Target& target);
  bool is_frozen() const { return options_.frozen; }
  // The error of frozen costs that lack it.
  static Status frozen_miss(const std::string& text, const Target& target);
  // Whether something goes on at its estimate.
  bool missed() const { return missed_; }

  CostStore& store() { return *store_; }

 private:
  bool expects() const { return missing_ == Missing::kExpect; }
  bool estimates() const { return missing_ == Missing::kEstimate || expects(); }
  // What the user says of it.
  std::optional<double> given(const Function& function, const std::string& target,
                              const Variant& variant) const;
  std::optional<double> given(const TensorType& type, const Encoding& from,
                              const Encoding& to) const;
  // `fresh` receives what a worker said.
  Result<TargetCosts> offer(const Function& function, const CostKey& key,
                            std::vector<std::pair<CostKey, TargetCosts>>& fresh);
  // A trial of a function whose variants are known or not, and what it says, which is kept.
  MeasureTask trial_of(const CostKey& key, bool is_listed, const Variant* wanted) const;
  TargetCosts keep_trial(const CostKey& key, std::optional<TargetCosts> known,
                         const Variant* wanted, TargetCosts answer);
  // What is known of the function, or is not for a worker to say; none where it is to be measured.
  Result<std::optional<TargetCosts>> without_asking(const Function& function, const CostKey& key);
  // Of a row that is in the store: what a variant costs now that a worker answered once more.
  std::optional<Cost> add_to_row(const KernelQuestion& kernel, const CostKey& key,
                                 TargetCosts answer);
  // Measured or, with the kind "trial", tried.
  Result<ConversionRow> ask_for_conversion(const std::string& kind, const TensorType& type,
                                           const Encoding& from, const Encoding& to);
  std::vector<std::string> converters() const;  // backends, the host among them
  // What this process lists, of unknown cost.
  Result<TargetCosts> listed_here(const Function& function, const CostKey& key) const;
  Result<TargetCosts> not_measured(const Function& function, const CostKey& key) const;

  const CostOptions options_;
  const std::shared_ptr<CostStore> store_;
  const std::shared_ptr<Measurer> measurer_;
  const Missing missing_ = Missing::kMeasure;
  bool missed_ = false;
  mutable std::map<Function, std::string> texts_;  // of functions that the user was asked about
};

}  // namespace collage
