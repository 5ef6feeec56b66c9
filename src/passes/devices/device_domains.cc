#include "passes/devices/device_domains.h"

#include "ir/op.h"

namespace collage {

std::string site_text(const Expr& expr) {
  std::string text = "a value";
  if (const auto* var = as<VarNode>(expr)) text = "%" + var->name;
  if (expr->kind() == ExprKind::kFunction) text = "the function";
  if (const auto* call = as<CallNode>(expr)) {
    text = call->op != nullptr ? call->op->name : "a call of a function";
    if (const auto* global = as<GlobalVarNode>(call->callee)) text = "@" + global->name;
  }
  return expr->origin().empty() ? text : fmt::format("{} ({})", text, expr->origin());
}

Domain DeviceDomains::fresh() {
  const size_t first = slots_.size();
  slots_.push_back({first, {}, nullptr});
  slots_.push_back({first + 1, {}, nullptr});
  return {first, first + 1};
}

size_t DeviceDomains::root(size_t slot) const {
  while (slots_[slot].parent != slot)
    slot = slots_[slot].parent = slots_[slots_[slot].parent].parent;
  return slot;
}

Status DeviceDomains::join_into(size_t slot, const DeviceConstraint& constraint, const Expr& stated,
                                const Expr& site) {
  Slot& known = slots_[slot];
  const std::optional<DeviceConstraint> both = join(known.constraint, constraint);
  if (!both)
    return bad_model("{} would have to be on two devices: {}, by {}, and {}, by {}",
                     site_text(site), known.constraint.to_string(), site_text(known.site),
                     constraint.to_string(), site_text(stated));
  if (known.constraint.is_open() && !constraint.is_open()) known.site = stated;
  known.constraint = *both;
  return {};
}

Status DeviceDomains::unify_slots(size_t a, size_t b, const Expr& site) {
  a = root(a), b = root(b);
  if (a == b) return {};
  TRY(join_into(a, slots_[b].constraint, slots_[b].site, site));
  slots_[b].parent = a;
  return {};
}

Status DeviceDomains::unify_devices(const Domain& a, const Domain& b, const Expr& site) {
  return unify_slots(a.device, b.device, site);
}

Status DeviceDomains::unify(const Domain& a, const Domain& b, const Expr& site) {
  const size_t first = root(a.scope), second = root(b.scope);
  if (first != second && !join(slots_[first].constraint, slots_[second].constraint))
    return unify_slots(first, second, site);  // says why
  TRY(unify_devices(a, b, site));
  return unify_slots(first, second, site);
}

Status DeviceDomains::constrain(const Domain& domain, const DeviceConstraint& constraint,
                                const Expr& site) {
  DeviceConstraint device = constraint, scope;
  std::swap(device.memory_scope, scope.memory_scope);
  TRY(join_into(root(domain.device), device, site, site));
  return join_into(root(domain.scope), scope, site, site);
}

Result<PlannedDevice> DeviceDomains::resolve(const Domain& domain,
                                             const DeclaredDevices& devices) const {
  const Slot &device = slots_[root(domain.device)], &scope = slots_[root(domain.scope)];
  PlannedDevice planned = devices.fallback();
  if (!device.constraint.is_open())
    planned = TRY(devices.resolve(device.constraint).with_context(site_text(device.site)));
  if (scope.constraint.memory_scope) planned.device.memory_scope = *scope.constraint.memory_scope;
  return planned;
}

}  // namespace collage
