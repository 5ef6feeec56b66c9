// A cover without a search over boundaries and without measuring, as FuseOps and the
// partition_for_<toolchain> functions of other compilers make it: the only one where the toolchain
// is determined, and one for each toolchain that compiles fast where an answer is wanted at once.
//
//   boundaries   the largest candidates that fit together (partition/lightweight.h): the leading
//                toolchain's first, then those of others by how fast they compile
//   variants     those whose costs are known compete by them; of the others the backend's first is
//                preferred, unless a later one saves a change of layout
//   trust        what was never measured is tried once, in a worker: it must compile and compute
//                right; what does not is passed over for smaller kernels (a large region for its
//                halves first), in the end for the host's
//
// Trials are kept in the cost database, so they happen once. The program is checked as a whole
// before it is used (cover_checks.h); where it is wrong, the kernels that are to blame
// (culprits.h) are refused, and the cover is found again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/interrupt.h"
#include "choose/cover_search.h"

namespace collage {

// One toolchain besides the host: there is nothing to choose.
bool is_determined(const std::vector<PartitionSpecPtr>& specs);
// The toolchains that found candidates, those that compile fast first; one null pointer where no
// candidate is of one that does.
std::vector<PartitionSpecPtr> leaders_of(const Candidates& candidates);

// Whether its kernels only place tensors inside one another.
bool moves_nothing(const PartitionSpec& spec);
// Whether kernels take milliseconds to compile. Not for the host.
bool compiles_fast(const PartitionSpec& spec);

// The place in which a toolchain chooses its kernels, beside the leader; null: all but the host
// lead.
int light_rank(const PartitionSpec& spec, const Target* leader);

// What is given by reference must outlive what uses it.
struct LightContext {
  const Candidates& candidates;
  MeasuredCosts& costs;
  VariantDemands demands;
  const CompileOptions& compile;
  KernelCompiler compile_kernel;
  Progress* progress = nullptr;  // may be null
  bool by_estimates = false;     // a cover is made by estimates, too (estimated_cover.h)
};

// A cover before anything of it is tried.
struct Outlook {
  size_t kernels = 0;
  size_t slow_to_compile = 0;  // different functions of toolchains that take long
  bool has_many_kernels() const { return kernels > 256; }
};

// As an estimator it gives what is known, else analytic estimates, and tries what a cover uses.
class LightSearch : private CostEstimator {
 public:
  // `leader` null: the toolchains choose in their order.
  LightSearch(LightContext context, PartitionSpecPtr leader);

  // Its one cover, of the candidates that were looked at so far, all of whose kernels compile. It
  // predicts nothing unless all of its costs are known.
  Result<CoverSearch> find();
  // Of its first cover, if all kernels turn out right.
  Result<Outlook> outlook() const;
  // The cover of these kernels, if they still exist and compile.
  Result<CoverSearch> find_again(const PlanRow& plan);
  // Likewise of a cover of other candidates, whose kernels are tried beside each other.
  Result<CoverSearch> adopt(const NamedCover& cover,
                            const std::vector<CostedCandidate>& candidates);
  const std::vector<CostedCandidate>& seen() const { return seen_; }
  // Leaves a kernel (kernel_text) out of the covers found from now on.
  void refuse(const std::string& kernel, const std::string& reason);

 private:
  std::vector<CandidatePartition> usable() const;
  Status choose_boundaries();
  void add_halves(const CandidatePartition& region);
  bool is_valid(const CandidatePartition& kernel) const;
  Status adopt_boundaries(const PlanRow& plan);
  Status expect(const std::vector<CandidatePartition>& kernels);
  int rank_of(const PartitionSpec& spec) const {
    return light_rank(spec, leader_ != nullptr ? &leader_->target : nullptr);
  }
  // The text of the variant that a candidate's kernel must have; "": any.
  const std::string& required_variant(const CandidatePartition& candidate) const;
  const Variant* wanted_variant(const CandidatePartition& candidate) const;
  Status try_beside_each_other(const std::vector<CandidatePartition>& candidates);
  Result<size_t> look_at(const CandidatePartition& candidate);
  Result<std::optional<Variant>> unlisted_stated(const CostedCandidate& entry) const;
  Status trust_host(CostedCandidate& entry) const;
  Status try_candidate(size_t position, const Variant* wanted);
  Result<NamedCover> cover_of_chosen();
  // It alone; an error where a kernel does not compile.
  Result<CoverSearch> compiled();
  bool is_measured(const NamedCover& cover);
  Result<bool> compile(const NamedCover& cover);
  void warn_of_fallbacks(const NamedCover& cover) const;

  bool only_knows() const override { return interrupted(); }
  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override;
  Result<ConversionRow> conversion_cost(const TensorType& type, const Encoding& from,
                                        const Encoding& to) override;
  std::optional<ConversionRow> known_conversion(const TensorType& type, const Encoding& from,
                                                const Encoding& to) override;
  double kernel_estimate(const Function& function, const TargetCosts& costs,
                         size_t variant) const override;
  double conversion_estimate(const TensorType& type, const Encoding& from,
                             const Encoding& to) const override;

  const DataflowGraph& graph_;
  const std::vector<CandidatePartition>& candidates_;
  const TargetChoice& targets_;
  MeasuredCosts& costs_;
  const VariantDemands demands_;
  const CompileOptions& compile_;
  const KernelCompiler compile_kernel_;
  Progress* const progress_;
  const PartitionSpecPtr leader_;
  std::map<std::string, std::string> required_;  // variants, by candidate: find_again, adopt
  std::map<std::string, Variant> wanted_;        // what they are to be tried as: adopt
  std::vector<CandidatePartition> halves_;       // of regions that failed
  std::vector<CostedCandidate> seen_;
  std::map<std::string, size_t> position_;             // in it
  std::map<const FunctionNode*, size_t> position_of_;  // likewise
  std::map<std::string, std::string> refused_;         // kernels, why
  std::set<size_t> chosen_;                            // of those seen: a cover
  std::vector<std::shared_ptr<Kernel>> kernels_;       // of it, until they are lowered
};

class EstimatedSearch;

// The covers that lead toolchains' searches give, the one of estimates, and the one that is known
// already.
class LightCovers {
 public:
  LightCovers(LightContext context, const std::vector<PartitionSpecPtr>& leaders);
  ~LightCovers();

  // Those of the searches that find one; the first one's error if none does. Where there is one
  // already, covers are left out that have very many more kernels, or take too long to compile for
  // what a run takes.
  Result<CoverSearch> find();
  Result<CoverSearch> find_again(const PlanRow& plan);  // as LightSearch
  void refuse(const std::string& kernel, const std::string& reason);

 private:
  bool is_worth_trying(const Outlook& outlook, const NamedCover& other) const;

  const LightContext context_;
  std::vector<std::unique_ptr<LightSearch>> searches_;
  std::unique_ptr<EstimatedSearch> estimated_;  // may be null
  std::unique_ptr<LightSearch> again_;  // holds the known plan's kernels until it is lowered
};

}  // namespace collage
