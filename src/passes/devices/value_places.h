// The domains of all values of a module: collects the constraints of device planning.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "passes/devices/device_domains.h"

namespace collage {

// One tensor of an expression's value, and its source through tuples and placements.
struct ValueLeaf {
  Expr origin;       // a parameter, a constant or a call
  size_t index = 0;  // of that one's leaves
  Domain of_origin;  // not of constants, which lie anywhere
  bool anywhere = false;
  // The domain that readers are unified with; none if they may lie elsewhere.
  std::optional<Domain> domain;
  bool loose = false;  // unified only where nothing contradicts
};

class ValuePlaces {
 public:
  struct OfFunction {
    std::vector<Domain> params, results;  // a leaf each
    bool states_params = false, states_results = false;
  };

  static Result<ValuePlaces> of(const Module& module);

  const std::vector<ValueLeaf>& leaves(const Expr& expr) const { return leaves_.at(expr.get()); }
  // Where a call needs its arguments' leaves, in order.
  const std::vector<Domain>& uses(const Expr& call) const { return uses_.at(call.get()); }
  const OfFunction& function(const Function& function) const {
    return functions_.at(function.get());
  }
  const DeviceDomains& domains() const { return domains_; }

 private:
  explicit ValuePlaces(const Module& module) : module_(module) {}
  // `of_control`: a function that control flow runs, whose parameters and results are on the host.
  Result<OfFunction*> add(const Function& function, bool of_control = false);
  Status walk(const Function& function, bool of_control = false);
  Result<Domain> on_host(const Expr& site);
  Status visit(const Expr& expr);
  Status visit_placement(const Expr& expr, const ValueLeaf& operand);
  Status visit_call(const Expr& expr);
  Status visit_control(const Expr& expr);
  Status visit_kernel(const Expr& expr, const std::vector<std::string>& scopes);
  Status attach(const ValueLeaf& leaf, const Domain& domain, bool loose, const Expr& site);
  void unify_loose();

  const Module& module_;
  DeviceDomains domains_;
  std::unordered_map<const ExprNode*, std::vector<ValueLeaf>> leaves_;
  std::unordered_map<const ExprNode*, std::vector<Domain>> uses_;
  std::unordered_map<const FunctionNode*, OfFunction> functions_;
  struct Loose {
    Domain a, b;
    Expr site;
  };
  std::vector<Loose> loose_;
};

}  // namespace collage
