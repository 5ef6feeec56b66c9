#include "passes/inline_functions.h"

#include <set>
#include <unordered_map>

#include "ir/visitor.h"

namespace collage {

namespace {

constexpr size_t kMostNodes = size_t{1} << 20;  // that calls come to
constexpr int kMostCalls = 256;                 // of one function inside another

class Inliner {
 public:
  explicit Inliner(const Module& module) : module_(module) {}

  Result<Function> inlined(const std::string& name) {
    Function& known = done_[name];
    if (known != nullptr) return known;
    if (open_.size() == kMostCalls)
      return bad_model("functions call one another more than {} levels deep", kMostCalls);
    if (!open_.insert(name).second) return bad_model("@{} calls itself", name);
    known = TRY(inlined(module_.functions.at(name)));
    open_.erase(name);
    if (!known->attrs.has("Primitive") || known->attrs.has("global_symbol")) return known;
    Attrs attrs = known->attrs;
    attrs.set("global_symbol", name);  // reports say what it was called
    return known = make_function(known->params, known->body, std::move(attrs));
  }

 private:
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
      std::unordered_map<const ExprNode*, Expr> arguments;
      for (size_t i = 0; i < callee->params.size(); ++i)
        arguments[callee->params[i].get()] = call->args[i];
      return substitute(callee->body, arguments);
    });
    return rewriter.rewrite(function);
  }

  const Module& module_;
  std::map<std::string, Function> done_;
  std::set<std::string> open_;  // those that are being walked over
  size_t nodes_ = 0;
};

}  // namespace

Result<bool> inline_functions(Module& module) {
  const auto main = module.functions.find("main");
  if (main == module.functions.end()) return false;
  Function inlined = TRY(Inliner(module).inlined("main"));
  if (inlined == main->second) return false;
  module.functions = {{"main", std::move(inlined)}};
  return true;
}

}  // namespace collage
