// CostStore: the costs that are known. It finds and keeps rows of a database, and holds what
// follows from the rows seen: bounds of kernels that were not measured, and the cores' usual state.
// It starts no process.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cost/cost_keys.h"
#include "cost/database.h"
#include "cost/machine.h"
#include "cost/row_values.h"
#include "cost/scaled_bounds.h"
#include "cost/shipped_costs.h"
#include "measure/worker.h"

namespace collage {

class CostModel;
class Pace;

struct CostOptions {
  CompileOptions compile;
  std::vector<std::string> worker_command;
  Effort effort = Effort::kDefault;
  bool frozen = false;  // a miss is an error (kFrozenCosts)
  WorkerLimits limits = WorkerLimits::from_environment();
  CacheState cache = CacheState::kStreaming;
  // The backends that convert between encodings, beside the host; empty: every backend.
  std::set<std::string> converters = {};
  // Costs that stand before measured ones; null: none. It must outlive what uses it.
  CostModel* model = nullptr;
  // The machine that costs are of, which measures nothing here; null: this one.
  std::shared_ptr<const Machine> machine = nullptr;
  bool probes = false;   // this machine's speed, so that its costs can be scaled for others
  Pace* pace = nullptr;  // null: measuring rests for nothing. It must outlive what uses it
  std::filesystem::path shipped = shipped_costs_folder();  // empty: nothing is known beforehand
};

struct CostCounts {
  int measured = 0, cached = 0, invalid = 0;  // functions and conversions; variants found invalid
  int disturbed = 0;                          // of those measured: while the machine was busy
  int tried = 0;                              // functions and conversions, without timing them
  int crashed = 0, silent = 0, out_of_memory = 0;  // of those invalid, what ended their worker
  int lacking = 0;  // of those invalid: for what else the machine lacked

  void add_invalid(const TargetCosts& costs);
};

// Identifies the costs of a function on a target. Functions that differ only in names or in large
// weights share a row; variants that need RoundingLimit::kAny have rows of their own.
struct CostKey {
  std::string text;  // canonical
  Target target;
  RoundingLimit rounding = RoundingLimit::kDefault;
};

class CostStore {
 public:
  // The database must outlive it.
  CostStore(CostDatabase& database, CostOptions options);

  // Whether rows are fetched one by one unless they are expected.
  bool fetches() const { return database_.is_server(); }
  // Fetches at once what is known of functions that are asked for next.
  void expect(const std::vector<CostKey>& keys);
  // Returns the row of that kind ("function", "trial", "schedules"). Given the `function` of that
  // text, it ignores a row whose variants do not fit it.
  std::optional<TargetCosts> find(const std::string& kind, const CostKey& key,
                                  const Function* function = nullptr);
  // Returns costs that were measured with enough care; with any if costs are frozen, or with
  // `any_care`.
  std::optional<TargetCosts> find_measured(const CostKey& key, const Function* function = nullptr,
                                           bool any_care = false);
  // Returns these, else the variants that there are, of unknown cost.
  // `takes_shipped`: what shipped rows list counts, which may not be what this build offers.
  std::optional<TargetCosts> find_offer(const CostKey& key, const Function* function = nullptr,
                                        bool takes_shipped = false);
  // Adds to what is offered what it took elsewhere.
  void add_hints(const CostKey& key, const Function* function, TargetCosts& offer);
  // Whether there are shipped costs to make estimates by.
  bool can_expect() { return shipped() != nullptr; }
  // Returns what a kernel, or a conversion, is expected to take where nobody measured it here: by
  // rows of this processor, by the database's of elsewhere, or by estimates; none: nothing is known
  // of its like.
  std::optional<double> expected(const Function& function, const Target& target,
                                 const Variant& variant);
  std::optional<double> expected_conversion(const TensorType& type, const Encoding& from,
                                            const Encoding& to);
  // Keeps the costs; in memory alone if the machine lacked something (fault.h).
  void put(const std::string& kind, const CostKey& key, const TargetCosts& costs);
  // Writes what `body` keeps at once.
  void together(const std::function<void()>& body) { database_.together(body); }
  // Keeps measured costs of the function.
  void put_measured(const CostKey& key, const Function& function, const TargetCosts& costs);
  // Returns whether this process measured the key's function.
  bool measured_now(const CostKey& key) const { return measured_now_.contains(id_of(key)); }
  void mark_measured(const CostKey& key) { measured_now_.insert(id_of(key)); }

  // Returns the row of a conversion that was measured ("conversion") or tried ("trial").
  std::optional<ConversionRow> find_conversion(const std::string& kind, const std::string& text);
  // `answers`: those of all backends.
  void put_conversion(const std::string& kind, const std::string& text, const ConversionRow& row,
                      const std::vector<TargetCosts>& answers);

  // Excludes from the task the subjects that killed a worker before.
  void skip_quarantined(MeasureTask& task, const std::string& text);
  void put_in_quarantine(const std::string& text, const std::string& subject, const Invalid& how);

  // Returns the best that any process with this database saw of the cores.
  const CoreState& usual() const { return usual_; }
  // Keeps what a worker saw of the cores in quiet moments, if it is better.
  void learn_usual(const Conditions& conditions);
  // Returns the average time of measuring a function on a target here, as it was when first asked;
  // a guess if there is none.
  double seconds_per_measurement();
  std::string program_context() const { return keys_.program_context(); }

  CostCounts counts;
  ScaledBounds bounds;  // of kernels that were not measured

 private:
  std::string context_of(const CostKey& key) const {
    return keys_.function_context(key.target, key.rounding);
  }
  std::string context_of(const CostKey& key, const Machine& other) const {
    return CostKeys(other.threads, options_.cache, other.processor)
        .function_context(key.target, key.rounding);
  }
  std::string id_of(const CostKey& key) const { return context_of(key) + key.text; }
  // Returns a foreign row: the variants, and what they took elsewhere.
  std::optional<TargetCosts> find_foreign(const CostKey& key, const Function* function);
  // Of another machine of this one's kind, scaled by their speeds.
  std::optional<TargetCosts> find_of_kind(const CostKey& key, const Function* function);
  const std::vector<Machine>& others_of_kind();
  // Keeps a row of this machine, once.
  void introduce_here();
  // What is known from elsewhere of what it takes.
  std::optional<TargetCosts> find_hints(const CostKey& key, const Function* function);
  // Likewise of shipped rows.
  std::optional<TargetCosts> find_shipped(const CostKey& key, const Function* function);
  const ShippedCosts* shipped();  // null: there are none
  // As it was probed on this machine, once.
  const MachineSpeed& speed();
  // Returns whether it timed out in less time than a worker has now.
  bool may_end(const Invalid& invalid) const;

  CostDatabase& database_;
  const CostOptions options_;
  CostKeys keys_;
  CoreState usual_;  // what is known of the cores in quiet moments (noise_gate.h)
  std::optional<double> average_seconds_;
  std::optional<std::shared_ptr<const ShippedCosts>> shipped_;  // none: not sought yet
  std::optional<MachineSpeed> speed_;
  std::optional<std::vector<Machine>> others_of_kind_;
  bool is_introduced_ = false;
  std::set<std::string> measured_now_;
};

}  // namespace collage
