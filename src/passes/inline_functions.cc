#include "passes/inline_functions.h"

#include <set>
#include <unordered_map>

#include "ir/visitor.h"
#include "ops/placement.h"

namespace collage {

namespace {

constexpr const char *kParams = "param_devices", *kResults = "result_devices";
constexpr size_t kMostNodes = size_t{1} << 20;  // that calls come to
constexpr int kMostCalls = 256;                 // of one function inside another

// What a call of the function computes.
Result<Expr> with_arguments(const FunctionNode& function, const CallNode& call) {
  std::unordered_map<const ExprNode*, Expr> arguments;
  for (size_t i = 0; i < function.params.size(); ++i)
    arguments[function.params[i].get()] = call.args[i];
  return substitute(function.body, arguments);
}

class Inliner {
 public:
  explicit Inliner(const Module& module) : module_(module) {}

  Result<Function> inlined(const std::string& name) {
    Function& known = done_[name];
    if (known != nullptr) return known;
    if (open_.size() == kMostCalls)
      return bad_model("functions call one another more than {} levels deep", kMostCalls);
    if (!open_.insert(name).second) return bad_model("@{} calls itself", name);
    const Function& function = module_.functions.at(name);
    known = TRY(inlined(function->attrs.has("Primitive")
                            ? function
                            : TRY(with_placements(function, name == "main"))));
    open_.erase(name);
    if (!known->attrs.has("Primitive") || known->attrs.has("global_symbol")) return known;
    Attrs attrs = known->attrs;
    attrs.set("global_symbol", name);  // reports say what it was called
    return known = make_function(known->params, known->body, std::move(attrs));
  }

 private:
  // With what its attributes state of devices as placements of what they name. Parameters of @main
  // lie there already, and its results are to.
  static Result<Function> with_placements(const Function& function, bool is_main) {
    size_t tensors = 0;
    for (const Expr& param : function->params) tensors += param->type().leaves().size();
    const std::vector<DeviceConstraint> params = TRY(stated_devices(function, kParams, tensors));
    const std::vector<DeviceConstraint> results =
        TRY(stated_devices(function, kResults, function->result_type().leaves().size()));
    Expr body = function->body;
    if (!params.empty()) {
      std::unordered_map<const ExprNode*, Expr> used;
      std::span<const DeviceConstraint> rest = params;
      for (const Expr& param : function->params) {
        const size_t own = param->type().leaves().size();
        used[param.get()] =
            TRY(placed(param, rest.first(own), is_main ? Placed::kBoth : Placed::kUsed));
        rest = rest.subspan(own);
      }
      body = TRY(substitute(body, used));
    }
    if (!results.empty())
      body = TRY(placed(body, results, is_main ? Placed::kBoth : Placed::kComputed));
    if (params.empty() && results.empty()) return function;
    Attrs attrs;
    for (const auto& [name, value] : function->attrs.entries())
      if (name != kParams && name != kResults) attrs.set(name, value);
    return make_function(function->params, body, std::move(attrs));
  }

  Result<Function> inlined(const Function& function) {
    Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
      if (rebuilt->kind() == ExprKind::kFunction)
        return Expr(TRY(inlined(std::static_pointer_cast<const FunctionNode>(rebuilt))));
      const auto* call = as<CallNode>(rebuilt);
      const auto* global = call == nullptr ? nullptr : as<GlobalVarNode>(call->callee);
      if (global == nullptr || module_.functions.count(global->name) == 0) return rebuilt;
      const Function callee = TRY(inlined(global->name));
      if (callee->attrs.has("Primitive"))
        return make_function_call(callee, call->args, call->origin());
      nodes_ += post_order(callee->body).size();
      if (nodes_ > kMostNodes)
        return bad_model("calls of functions come to more than {} operators", kMostNodes);
      return with_own_literals(TRY(with_arguments(*callee, *call)));
    });
    return rewriter.rewrite(function);
  }

  // A function that is called twice hands control flow a literal of its own at each place, since
  // passes rewrite these one by one.
  Result<Expr> with_own_literals(const Expr& body) {
    Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
      const auto* literal = as<FunctionNode>(rebuilt);
      if (literal == nullptr || literal->attrs.has("Primitive")) return rebuilt;
      std::vector<Expr> params = literal->params;
      std::unordered_map<const ExprNode*, Expr> own;
      if (!placed_.insert(rebuilt).second)
        for (Expr& param : params)
          param = own[param.get()] = make_var(as<VarNode>(param)->name, param->type());
      const Expr inside = TRY(with_own_literals(TRY(substitute(literal->body, own))));
      return inside == literal->body ? rebuilt
                                     : make_function(std::move(params), inside, literal->attrs);
    });
    return rewriter.rewrite(body);
  }

  const Module& module_;
  std::map<std::string, Function> done_;
  std::set<std::string> open_;  // those that are being walked over
  std::set<Expr> placed_;       // literals
  size_t nodes_ = 0;
};

}  // namespace

Result<bool> take_apart(Module& module, const std::set<const FunctionNode*>& functions) {
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    const auto* callee = call == nullptr ? nullptr : as<FunctionNode>(call->callee);
    if (callee == nullptr || !functions.contains(callee)) return rebuilt;
    return with_arguments(*callee, *call);
  });
  for (auto& [name, function] : module.functions) function = TRY(rewriter.rewrite(function));
  return rewriter.changed();
}

Result<Function> inlined_function(const Module& module, const std::string& name) {
  return Inliner(module).inlined(name);
}

Result<bool> inline_functions(Module& module) {
  const auto main = module.functions.find("main");
  if (main == module.functions.end()) return false;
  Function inlined = TRY(inlined_function(module, "main"));
  if (inlined == main->second) return false;
  module.functions = {{"main", std::move(inlined)}};
  return true;
}

}  // namespace collage
