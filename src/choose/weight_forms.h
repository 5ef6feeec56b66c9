// Programs that share weights: specialisations of one model, compiled one after the other. Kernels
// pack their weights, each variant in a form of its own (Variant::weights); memory holds one set of
// weights only where the variants of all programs keep each weight in one form
// (runtime/shared_constants.h then finds the copies equal). So the first program leaves out
// variants whose form nobody else could use, and the next ones those that would keep a weight in
// another form than it is in memory: as long as some backend besides the host can do with what is
// left.
//
// Weights are the large constants that anchors (products, convolutions) take. Tables that are read
// in place (embeddings) are in one form anyway, but for backends with forms of their own, whose
// variants are left out where they would keep such. What is both a table and an anchor's weight is
// to stay plain.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/variant.h"
#include "ir/expr.h"
#include "measure/task.h"

namespace collage {

struct CostedCandidate;
struct NamedCover;

// A large constant by what it holds: a sum of its bytes, and their number.
using WeightId = std::pair<uint64_t, size_t>;
using Forms = std::set<std::string>;

// Of all programs compiled with it: ProgramOptions::weight_forms. Any thread may use it.
class WeightForms {
 public:
  std::map<WeightId, Forms> known() const;
  void add(const WeightId& weight, const std::string& form);

 private:
  mutable std::mutex mutex_;
  std::map<WeightId, Forms> forms_;
};

// What one compilation asks of variants.
class WeightDemands {
 public:
  explicit WeightDemands(std::shared_ptr<WeightForms> forms);

  // Decides for the weights of these candidates in which forms they may be.
  void decide(const std::vector<CostedCandidate>& candidates);
  // Equal for functions of which the same variants are left out.
  std::string text(const Function& function) const;
  // Makes Invalid what keeps a weight in another form. Of weights that were not decided on, as long
  // as a variant is left.
  void leave_out(const Function& function, TargetCosts& costs) const;
  // What the cover's kernels keep is in memory from now on.
  void remember(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) const;

 private:
  struct Weight {
    WeightId id;
    bool of_anchor;
    auto operator<=>(const Weight&) const = default;
  };
  std::set<Weight> weights_of(const Function& function) const;
  WeightId id_of(const Tensor& constant) const;
  bool fits(const Weight& weight, const std::string& form) const;

  const std::shared_ptr<WeightForms> forms_;
  std::map<WeightId, Forms> known_;
  std::map<Weight, bool> decided_;  // whether variants must fit
  mutable std::map<const void*, WeightId> ids_;
};

}  // namespace collage
