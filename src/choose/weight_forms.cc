#include "choose/weight_forms.h"

#include <algorithm>

#include "backend/backend.h"
#include "base/block_sum.h"
#include "choose/cover_search.h"
#include "ir/visitor.h"

namespace collage {

namespace {

constexpr size_t kLeastBytes = size_t{1} << 20;

bool is_out(const MeasuredVariant& row) { return std::holds_alternative<Invalid>(row.cost); }

bool is_of_host(const TargetCosts& costs) {
  const Result<Target> target = Target::parse(costs.target);
  const Backend* backend = target ? find_backend(target->kind) : nullptr;
  return backend == nullptr || backend->traits().is_host;
}

}  // namespace

std::map<WeightId, Forms> WeightForms::known() const {
  std::lock_guard lock(mutex_);
  return forms_;
}

void WeightForms::add(const WeightId& weight, const std::string& form) {
  std::lock_guard lock(mutex_);
  forms_[weight].insert(form);
}

std::shared_ptr<WeightForms> make_weight_forms() { return std::make_shared<WeightForms>(); }

WeightDemands::WeightDemands(std::shared_ptr<WeightForms> forms)
    : forms_(std::move(forms)), known_(forms_->known()) {}

WeightId WeightDemands::id_of(const Tensor& constant) const {
  auto [known, fresh] = ids_.try_emplace(constant.raw());
  if (fresh)
    known->second = {block_sum({static_cast<const char*>(constant.raw()), constant.bytes()}),
                     constant.bytes()};
  return known->second;
}

std::set<WeightDemands::Weight> WeightDemands::weights_of(const Function& function) const {
  std::set<Weight> found;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) continue;
    const bool anchor = call->op != nullptr && call->op->kind == FusionKind::kAnchor;
    for (const Expr& arg : call->args)
      if (const auto* constant = as<ConstantNode>(arg);
          constant != nullptr && constant->value.bytes() >= kLeastBytes)
        found.insert({id_of(constant->value), anchor});
  }
  return found;
}

bool WeightDemands::fits(const Weight& weight, const std::string& form) const {
  if (form.empty()) return false;
  const auto known = weight.of_anchor ? known_.find(weight.id) : known_.end();
  return known == known_.end() || known->second.count(form) > 0;
}

void WeightDemands::decide(const std::vector<CostedCandidate>& candidates) {
  for (const CostedCandidate& candidate : candidates)
    for (const Weight& weight : weights_of(candidate.function))
      if (!weight.of_anchor) known_[weight.id].insert(kPlainWeights);
  for (const CostedCandidate& candidate : candidates) {
    if (candidate.is_host() || candidate.costs == nullptr) continue;
    const std::vector<MeasuredVariant>& rows = candidate.costs->variants;
    for (const Weight& weight : weights_of(candidate.function))
      decided_[weight] |= std::any_of(rows.begin(), rows.end(), [&](const MeasuredVariant& row) {
        return !is_out(row) && fits(weight, row.variant.weights);
      });
  }
}

std::string WeightDemands::text(const Function& function) const {
  std::string text;
  for (const Weight& weight : weights_of(function)) {
    const auto decided = decided_.find(weight);
    if (decided != decided_.end() && !decided->second) continue;
    text += weight.of_anchor ? "anchor:" : "other:";
    if (const auto known = known_.find(weight.id); known != known_.end())
      for (const std::string& form : known->second) text += form + ",";
  }
  return text;
}

void WeightDemands::leave_out(const Function& function, TargetCosts& costs) const {
  const std::set<Weight> weights = weights_of(function);
  if (weights.empty() || is_of_host(costs)) return;
  const auto stays = [&](const MeasuredVariant& row, bool open_too) {
    return std::all_of(weights.begin(), weights.end(), [&](const Weight& weight) {
      const auto decided = decided_.find(weight);
      const bool must = decided != decided_.end() ? decided->second : open_too;
      return !must || fits(weight, row.variant.weights);
    });
  };
  std::vector<MeasuredVariant>& rows = costs.variants;
  const bool open_too = std::any_of(rows.begin(), rows.end(), [&](const MeasuredVariant& row) {
    return !is_out(row) && stays(row, true);
  });
  for (MeasuredVariant& row : rows)
    if (!is_out(row) && !stays(row, open_too))
      row.cost = Invalid{"it would keep its weights in a form of its own"};
}

void WeightDemands::remember(const NamedCover& cover,
                             const std::vector<CostedCandidate>& candidates) const {
  for (const Cover::Kernel& kernel : cover.kernels)
    for (const Weight& weight : weights_of(candidates[kernel.candidate].function))
      if (const std::string& form = row_of(kernel, candidates).variant.weights;
          weight.of_anchor && !form.empty())
        forms_->add(weight.id, form);
}

}  // namespace collage
