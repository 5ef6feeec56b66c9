#include "passes/devices/value_places.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/control.h"
#include "ops/placement.h"

namespace collage {

namespace {

// The graph function that a call goes to; null for kernels, which are on one device.
Function called_function(const CallNode& call, const Module& module) {
  Function function;
  if (call.callee == nullptr) return nullptr;
  if (call.callee->kind() == ExprKind::kFunction) {
    function = std::static_pointer_cast<const FunctionNode>(call.callee);
  } else if (const auto* global = as<GlobalVarNode>(call.callee)) {
    const auto found = module.functions.find(global->name);
    if (found != module.functions.end()) function = found->second;
  }
  return function != nullptr && !function->attrs.has("Primitive") ? function : nullptr;
}

// Of a tensor program or external function, a leaf each of its parameters and its result.
std::vector<std::string> stated_scopes(const CallNode& call, const Module& module) {
  const auto* global = as<GlobalVarNode>(call.callee);
  if (global == nullptr) return {};
  const auto found = module.abstract_functions.find(global->name);
  return found != module.abstract_functions.end() ? found->second->memory_scopes()
                                                  : std::vector<std::string>();
}

// Whether it is a number that is computed from numbers alone: a condition, an extent.
bool is_of_numbers(const Expr& expr) {
  if (!expr->type().is_tensor() || !expr->tensor_type().shape.empty()) return false;
  const std::vector<Expr> inputs = expr_inputs(expr);
  return std::all_of(inputs.begin(), inputs.end(), is_of_numbers);
}

}  // namespace

Result<ValuePlaces> ValuePlaces::of(const Module& module) {
  ValuePlaces places(module);
  for (const auto& [name, function] : module.functions) {
    if (function->attrs.has("Primitive")) continue;
    Status walked = places.walk(function);
    if (!walked.ok()) return std::move(walked).with_context("@" + name);
  }
  places.unify_loose();
  return places;
}

Result<ValuePlaces::OfFunction*> ValuePlaces::add(const Function& function, bool of_control) {
  const auto [known, is_new] = functions_.try_emplace(function.get());
  OfFunction& places = known->second;
  if (!is_new) return &places;
  size_t count = 0;
  for (const Expr& param : function->params) count += param->type().leaves().size();
  const auto params = TRY(stated_devices(function, "param_devices", count));
  const size_t results = function->result_type().leaves().size();
  const auto given = TRY(stated_devices(function, "result_devices", results));
  places.states_params = !params.empty();
  places.states_results = !given.empty();
  for (const Expr& param : function->params) {
    std::vector<ValueLeaf>& leaves = leaves_[param.get()];
    for (size_t i = 0; i < param->type().leaves().size(); ++i) {
      const Domain domain = of_control ? TRY(on_host(param)) : domains_.fresh();
      if (!params.empty()) TRY(domains_.constrain(domain, params[places.params.size()], param));
      places.params.push_back(domain);
      leaves.push_back({param, i, domain, false, domain, false});
      if (of_control) leaves.back().domain.reset();
    }
  }
  for (size_t i = 0; i < results; ++i) {
    places.results.push_back(of_control ? TRY(on_host(function)) : domains_.fresh());
    if (!given.empty()) TRY(domains_.constrain(places.results[i], given[i], function));
  }
  return &places;
}

Status ValuePlaces::walk(const Function& function, bool of_control) {
  const std::vector<Domain>& results = TRY(add(function, of_control))->results;
  for (const Expr& expr : post_order(function->body)) TRY(visit(expr));
  const std::vector<ValueLeaf>& body = leaves(function->body);
  for (size_t i = 0; i < results.size(); ++i)
    if (!of_control || is_of_numbers(body[i].origin))
      TRY(attach(body[i], results[i], of_control, function->body));
  return {};
}

Status ValuePlaces::attach(const ValueLeaf& leaf, const Domain& domain, bool loose,
                           const Expr& site) {
  if (!leaf.domain) return {};
  if (!loose && !leaf.loose) return domains_.unify(*leaf.domain, domain, site);
  loose_.push_back({*leaf.domain, domain, site});
  return {};
}

// What contradicts is copied; from scope to scope of one device, if that is all.
void ValuePlaces::unify_loose() {
  for (const auto& [a, b, site] : loose_)
    if (!domains_.unify(a, b, site).ok()) (void)domains_.unify_devices(a, b, site);
}

Status ValuePlaces::visit(const Expr& expr) {
  if (leaves_.count(expr.get()) > 0) return {};
  switch (expr->kind()) {
    case ExprKind::kConstant:
      leaves_[expr.get()] = {{expr, 0, {}, true, std::nullopt, false}};
      return {};
    case ExprKind::kTuple: {
      std::vector<ValueLeaf> all;
      for (const Expr& field : as<TupleNode>(expr)->fields)
        all.insert(all.end(), leaves(field).begin(), leaves(field).end());
      leaves_[expr.get()] = std::move(all);
      return {};
    }
    case ExprKind::kTupleGetItem: {
      const auto* item = as<TupleGetItemNode>(expr);
      size_t first = 0;
      for (int64_t i = 0; i < item->index; ++i)
        first += item->tuple->type().fields()[static_cast<size_t>(i)].leaves().size();
      const std::vector<ValueLeaf>& all = leaves(item->tuple);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      const auto size = static_cast<std::ptrdiff_t>(expr->type().leaves().size());
      leaves_[expr.get()] = std::vector<ValueLeaf>(begin, begin + size);
      return {};
    }
    case ExprKind::kCall:
      if (device_placement(expr))
        return visit_placement(expr, leaves(as<CallNode>(expr)->args[0])[0]);
      return visit_call(expr);
    default:
      leaves_[expr.get()];  // callees, and functions that control flow runs: no values
      return {};
  }
}

Status ValuePlaces::visit_placement(const Expr& expr, const ValueLeaf& operand) {
  const DevicePlacement placement = *device_placement(expr);
  if (operand.domain) TRY(domains_.constrain(*operand.domain, placement.operand, expr));
  ValueLeaf result = operand;
  result.domain.reset();
  result.loose = false;
  if (!placement.result.is_open()) {
    result.domain = domains_.fresh();
    TRY(domains_.constrain(*result.domain, placement.result, expr));
  }
  leaves_[expr.get()] = {std::move(result)};
  return {};
}

Status ValuePlaces::visit_call(const Expr& expr) {
  const auto& call = *as<CallNode>(expr);
  if (is_control(call)) return visit_control(expr);
  const Function function = called_function(call, module_);
  if (function == nullptr) return visit_kernel(expr, stated_scopes(call, module_));
  if (call.callee->kind() == ExprKind::kFunction && functions_.count(function.get()) == 0)
    TRY(walk(function));
  const OfFunction& places = *TRY(add(function));
  size_t next = 0;
  for (const Expr& arg : call.args)
    for (const ValueLeaf& leaf : leaves(arg))
      TRY(attach(leaf, places.params[next++], places.states_params, expr));
  uses_[expr.get()] = places.params;
  std::vector<ValueLeaf>& results = leaves_[expr.get()];
  for (size_t i = 0; i < places.results.size(); ++i)
    results.push_back(
        {expr, i, places.results[i], false, places.results[i], places.states_results});
  return {};
}

// The host decides what runs, and hands it values and takes results in its memory. Numbers stay
// there, and are computed there, unless something states otherwise; the rest is where it would be
// without that.
Status ValuePlaces::visit_control(const Expr& expr) {
  std::vector<Domain>& uses = uses_[expr.get()];
  for (const Expr& arg : as<CallNode>(expr)->args) {
    if (arg->kind() == ExprKind::kFunction)
      TRY(walk(std::static_pointer_cast<const FunctionNode>(arg), true));
    for (const ValueLeaf& leaf : leaves(arg)) {
      uses.push_back(TRY(on_host(expr)));
      if (is_of_numbers(leaf.origin)) TRY(attach(leaf, uses.back(), true, expr));
    }
  }
  std::vector<ValueLeaf>& results = leaves_[expr.get()];
  for (size_t i = 0; i < expr->type().leaves().size(); ++i)
    results.push_back({expr, i, TRY(on_host(expr)), false, std::nullopt, false});
  return {};
}

Result<Domain> ValuePlaces::on_host(const Expr& site) {
  DeviceConstraint host = DeviceConstraint::exactly({});
  host.memory_scope.reset();
  const Domain domain = domains_.fresh();
  TRY(domains_.constrain(domain, host, site));
  return domain;
}

Status ValuePlaces::visit_kernel(const Expr& expr, const std::vector<std::string>& scopes) {
  const Domain whole = domains_.fresh();
  size_t next = 0;
  // What states its scope is on the same device, and what it is handed may be copied there.
  const auto place = [&](bool& stated) -> Result<Domain> {
    stated = next < scopes.size() && !scopes[next].empty();
    const size_t index = next++;
    if (!stated) return whole;
    const Domain own = domains_.fresh();
    TRY(domains_.unify_devices(own, whole, expr));
    TRY(domains_.constrain(own, TRY(DeviceConstraint::parse("/" + scopes[index])), expr));
    return own;
  };
  bool stated = false;
  std::vector<Domain> uses;
  for (const Expr& arg : as<CallNode>(expr)->args)
    for (const ValueLeaf& leaf : leaves(arg)) {
      uses.push_back(TRY(place(stated)));
      TRY(attach(leaf, uses.back(), stated, expr));
    }
  uses_[expr.get()] = std::move(uses);
  std::vector<ValueLeaf>& results = leaves_[expr.get()];
  for (size_t i = 0; i < expr->type().leaves().size(); ++i) {
    const Domain domain = TRY(place(stated));
    results.push_back({expr, i, domain, false, domain, stated});
  }
  return {};
}

}  // namespace collage
