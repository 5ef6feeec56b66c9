#include "passes/devices/plan_devices.h"

#include <map>
#include <tuple>
#include <unordered_map>

#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/placement.h"
#include "passes/devices/device_numbers.h"
#include "passes/devices/value_places.h"

namespace collage {

namespace {

std::string text_of(const VirtualDevice& device) {
  return PlannedDevice{device, ""}.constraint().to_string();
}

class Rewrite {
 public:
  Rewrite(const Module& module, const ValuePlaces& places, const DeclaredDevices& devices)
      : module_(module), places_(places), devices_(devices) {}

  Result<Module> run() {
    Module planned = module_;
    for (auto& [name, function] : planned.functions)
      if (!function->attrs.has("Primitive")) function = TRY(rewritten(function));
    return planned;
  }

 private:
  // The new body of one function, and what is copied in it.
  struct Body {
    std::unordered_map<const ExprNode*, Expr> made;
    std::map<std::tuple<const ExprNode*, size_t, VirtualDevice>, Expr> copies;
    bool elsewhere = false;  // something is not where everything is by itself
  };

  Result<PlannedDevice> place(const Domain& domain, Body& body) const {
    PlannedDevice planned = TRY(places_.domains().resolve(domain, devices_));
    body.elsewhere |= !(planned == devices_.fallback());
    return planned;
  }

  Result<Function> rewritten(const Function& function) {
    const auto known = functions_.find(function.get());
    if (known != functions_.end()) return known->second;
    Body body;
    for (const Expr& expr : post_order(function->body))
      body.made[expr.get()] = TRY(made(expr, body));
    const ValuePlaces::OfFunction& own = places_.function(function);
    size_t next = 0;
    const Expr result = TRY(placed(function->body, own.results, next, body));
    Attrs attrs = function->attrs;
    const std::string params = TRY(list_of(own.params, body)),
                      results = TRY(list_of(own.results, body));
    if (body.elsewhere) attrs.set("param_devices", params).set("result_devices", results);
    return functions_[function.get()] = make_function(function->params, result, std::move(attrs));
  }

  Result<std::string> list_of(const std::vector<Domain>& domains, Body& body) const {
    std::vector<DeviceConstraint> list;
    for (const Domain& domain : domains) list.push_back(TRY(place(domain, body)).constraint());
    return device_list_text(list);
  }

  Result<Expr> made(const Expr& expr, Body& body) {
    const auto made_inputs = [&] {
      std::vector<Expr> inputs;
      for (const Expr& input : expr_inputs(expr)) inputs.push_back(body.made.at(input.get()));
      return inputs;
    };
    if (expr->kind() == ExprKind::kFunction) {
      Function literal = std::static_pointer_cast<const FunctionNode>(expr);
      return literal->attrs.has("Primitive") ? expr : Expr(TRY(rewritten(literal)));
    }
    if (const auto* projection = as<TupleGetItemNode>(expr))  // keeps no other field alive
      if (const auto* tuple = as<TupleNode>(body.made.at(projection->tuple.get())))
        return tuple->fields[static_cast<size_t>(projection->index)];
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) return with_inputs(expr, made_inputs());
    if (device_placement(expr)) return body.made.at(call->args[0].get());
    std::vector<Expr> inputs = made_inputs();
    const std::vector<Domain>& uses = places_.uses(expr);
    for (size_t i = 0, next = 0; i < call->args.size(); ++i)
      inputs[i] = TRY(placed(call->args[i], uses, next, body));
    for (const ValueLeaf& leaf : places_.leaves(expr)) TRY(place(leaf.of_origin, body));
    return with_inputs(expr, inputs);
  }

  // The value with every leaf in the place of its use, from `next` on.
  Result<Expr> placed(const Expr& expr, const std::vector<Domain>& uses, size_t& next, Body& body) {
    const std::vector<ValueLeaf>& leaves = places_.leaves(expr);
    const size_t first = next;
    next += leaves.size();
    bool moves = false;
    std::vector<Expr> values;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const ValueLeaf& leaf = leaves[i];
      const VirtualDevice wanted = TRY(place(uses[first + i], body)).device;
      Expr value = TRY(item(body.made.at(leaf.origin.get()), leaf.index));
      if (!leaf.anywhere) {
        const VirtualDevice from = TRY(place(leaf.of_origin, body)).device;
        if (from != wanted) {
          moves = true;
          Expr& copy = body.copies[{leaf.origin.get(), leaf.index, wanted}];
          if (copy == nullptr)
            copy = TRY(make_call("device_copy", {value},
                                 {{"from", text_of(from)}, {"to", text_of(wanted)}}));
          value = copy;
        }
      }
      values.push_back(std::move(value));
    }
    if (!moves) return body.made.at(expr.get());
    size_t taken = 0;
    return gathered(expr->type(), values, taken);
  }

  // One tensor of a value.
  static Result<Expr> item(const Expr& value, size_t index) {
    if (value->type().is_tensor()) return value;
    if (const auto* tuple = as<TupleNode>(value))
      for (const Expr& field : tuple->fields) {
        const size_t leaves = field->type().leaves().size();
        if (index < leaves) return item(field, index);
        index -= leaves;
      }
    const std::vector<Type>& fields = value->type().fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      const size_t leaves = fields[i].leaves().size();
      if (index < leaves)
        return item(TRY(make_tuple_get_item(value, static_cast<int64_t>(i))), index);
      index -= leaves;
    }
    return internal_error("a value has no tensor {}", index);
  }

  static Expr gathered(const Type& type, const std::vector<Expr>& values, size_t& next) {
    if (type.is_tensor()) return values[next++];
    std::vector<Expr> fields;
    for (const Type& field : type.fields()) fields.push_back(gathered(field, values, next));
    return make_tuple(std::move(fields));
  }

  const Module& module_;
  const ValuePlaces& places_;
  const DeclaredDevices& devices_;
  std::unordered_map<const FunctionNode*, Function> functions_;
};

}  // namespace

Result<Module> plan_devices(const Module& module, const DeclaredDevices& devices) {
  const Module numbered = TRY(with_device_numbers(module, devices));
  const ValuePlaces places = TRY(ValuePlaces::of(numbered));
  return Rewrite(numbered, places, devices).run();
}

Result<KernelDevices> kernel_devices(const Module& module, const DeclaredDevices& devices) {
  const ValuePlaces places = TRY(ValuePlaces::of(module));
  KernelDevices result;
  for (const auto& [name, function] : module.functions) {
    if (function->attrs.has("Primitive")) continue;
    for (const Expr& expr : post_order(function->body)) {
      const auto* call = as<CallNode>(expr);
      if (call == nullptr || call->op == nullptr || device_placement(expr)) continue;
      const ValueLeaf& leaf = places.leaves(expr)[0];
      result[expr.get()] = TRY(places.domains().resolve(leaf.of_origin, devices));
    }
  }
  return result;
}

}  // namespace collage
