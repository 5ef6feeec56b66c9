// A planner of devices that tries every assignment of places to values and knows no unification:
// what device planning (passes/devices/plan_devices.h) is compared with. For modules of a dozen
// values.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ir/module.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/control.h"
#include "ops/placement.h"

namespace collage::testing {

// Everything that has a place is a node: parameters, kernels, constrained results of placements,
// results of functions, and what control flow is handed. Each has earlier nodes that must be where
// it is.
class EveryAssignment {
 public:
  // `places`: the fallback first.
  EveryAssignment(const Module& module, std::vector<VirtualDevice> places)
      : module_(module), places_(std::move(places)) {
    for (const auto& [name, function] : module.functions) add(function, false);
    for (const auto& [name, function] : module.functions) keep(function.get());
  }

  size_t nodes() const { return nodes_.size(); }

  // The number of copies; none where no assignment holds.
  std::optional<size_t> copies() {
    std::vector<size_t> chosen(nodes_.size());
    search(0, 0, chosen);
    if (best_.empty()) return std::nullopt;
    std::set<std::tuple<const ExprNode*, size_t, size_t>> made;
    for (const Use& use : uses_) {
      const size_t wanted = best_[use.at];
      if (live_.contains(use.user) && best_[*use.value.home] != wanted)
        made.emplace(use.value.origin, use.value.index, wanted);
    }
    return made.size();
  }

 private:
  struct Node {
    std::vector<DeviceConstraint> constraints;
    std::vector<size_t> together;  // with earlier ones
  };
  struct Value {  // one tensor, behind tuples and placements
    const ExprNode* origin;
    size_t index;                // of that one's leaves
    std::optional<size_t> home;  // where it is; constants are anywhere
    std::optional<size_t> seen;  // what its readers must be together with
  };
  struct Use {
    Value value;
    const ExprNode* user;
    size_t at;
  };
  struct Places {
    std::vector<size_t> params, results;
  };

  size_t node(std::vector<DeviceConstraint> constraints = {}) {
    nodes_.push_back({std::move(constraints), {}});
    return nodes_.size() - 1;
  }
  size_t on_host() {
    DeviceConstraint host = DeviceConstraint::exactly({});
    host.memory_scope.reset();
    return node({host});
  }
  void together(size_t a, size_t b) { nodes_[std::max(a, b)].together.push_back(std::min(a, b)); }
  void use(const Value& value, const ExprNode* user, size_t at, bool is_together = true) {
    if (is_together && value.seen) together(*value.seen, at);
    if (value.home) uses_.push_back({value, user, at});
  }

  Places add(const Function& function, bool of_control) {
    Places places;
    for (const Expr& param : function->params)
      for (size_t i = 0; i < param->type().leaves().size(); ++i) {
        const size_t home = of_control ? on_host() : node();
        places.params.push_back(home);
        values_[param.get()].push_back(
            {param.get(), i, home, of_control ? std::nullopt : std::optional(home)});
      }
    for (const Expr& expr : post_order(function->body)) add(expr);
    for (const Value& value : values_.at(function->body.get())) {
      places.results.push_back(of_control ? on_host() : node());
      use(value, function.get(), places.results.back(), !of_control);
    }
    functions_[function.get()] = places;
    return places;
  }

  void add(const Expr& expr) {
    if (values_.contains(expr.get())) return;
    std::vector<Value>& values = values_[expr.get()];
    if (expr->kind() == ExprKind::kConstant) {
      values = {{expr.get(), 0, std::nullopt, std::nullopt}};
    } else if (const auto* tuple = as<TupleNode>(expr)) {
      for (const Expr& field : tuple->fields)
        for (const Value& value : values_.at(field.get())) values.push_back(value);
    } else if (const auto* item = as<TupleGetItemNode>(expr)) {
      size_t next = 0;
      for (int64_t i = 0; i < item->index; ++i)
        next += item->tuple->type().fields()[static_cast<size_t>(i)].leaves().size();
      for (size_t i = 0; i < expr->type().leaves().size(); ++i)
        values.push_back(values_.at(item->tuple.get())[next + i]);
    } else if (const auto placement = device_placement(expr)) {
      Value value = values_.at(as<CallNode>(expr)->args[0].get())[0];
      if (value.seen) nodes_[*value.seen].constraints.push_back(placement->operand);
      value.seen.reset();
      if (!placement->result.is_open()) value.seen = node({placement->result});
      values.push_back(value);
    } else if (const auto* call = as<CallNode>(expr)) {
      add(*call, values);
    }
  }
  void add(const CallNode& call, std::vector<Value>& values) {
    const bool of_control = is_control(call);
    const auto* global = as<GlobalVarNode>(call.callee);
    const bool of_function = global != nullptr && module_.functions.contains(global->name);
    const Places called =
        of_function ? functions_.at(module_.functions.at(global->name).get()) : Places();
    const size_t kernel = of_control || of_function ? 0 : node();
    size_t next = 0;
    for (const Expr& arg : call.args) {
      if (arg->kind() == ExprKind::kFunction)
        add(std::static_pointer_cast<const FunctionNode>(arg), true);
      for (const Value& value : values_[arg.get()])
        use(value, &call,
            of_control    ? on_host()
            : of_function ? called.params[next++]
                          : kernel,
            !of_control);
    }
    for (size_t i = 0; i < call.type().leaves().size(); ++i) {
      const size_t home = of_control ? on_host() : of_function ? called.results[i] : kernel;
      values.push_back({&call, i, home, of_control ? std::nullopt : std::optional(home)});
    }
  }

  // What is printed of a planned module: projections keep nothing but their field.
  void keep(const FunctionNode* function) {
    live_.insert(function);
    for (const Value& value : values_.at(function->body.get())) keep(value);
  }
  void keep(const Value& value) {
    if (value.origin->kind() != ExprKind::kCall || !live_.insert(value.origin).second) return;
    for (const Expr& arg : static_cast<const CallNode*>(value.origin)->args) {
      if (const auto* literal = as<FunctionNode>(arg)) keep(literal);
      for (const Value& input : values_.at(arg.get())) keep(input);
    }
  }

  static bool fits(const VirtualDevice& device, const DeviceConstraint& constraint) {
    return (!constraint.device || *constraint.device == device.device) &&
           (!constraint.id || *constraint.id == device.id) &&
           (!constraint.memory_scope || *constraint.memory_scope == device.memory_scope);
  }
  void search(size_t next, size_t rank, std::vector<size_t>& chosen) {
    if (rank >= best_rank_) return;
    if (next == nodes_.size()) {
      best_ = chosen;
      best_rank_ = rank;
      return;
    }
    for (size_t place = 0; place < places_.size(); ++place) {
      bool holds = true;
      for (const DeviceConstraint& constraint : nodes_[next].constraints)
        holds = holds && fits(places_[place], constraint);
      for (const size_t other : nodes_[next].together) holds = holds && chosen[other] == place;
      if (!holds) continue;
      chosen[next] = place;
      search(next + 1, rank + place, chosen);
    }
  }

  const Module& module_;
  const std::vector<VirtualDevice> places_;
  std::vector<Node> nodes_;
  std::map<const ExprNode*, std::vector<Value>> values_;
  std::map<const ExprNode*, Places> functions_;
  std::vector<Use> uses_;
  std::set<const ExprNode*> live_;  // calls and functions
  std::vector<size_t> best_;
  size_t best_rank_ = std::numeric_limits<size_t>::max();
};

}  // namespace collage::testing
