// Modules as script: script.h has the form.
#include <unordered_map>

#include "base/name_supply.h"
#include "frontend/script/script.h"
#include "frontend/script/script_program.h"
#include "ir/op.h"
#include "ir/text_attrs.h"
#include "ir/text_constants.h"
#include "ir/visitor.h"
#include "tensor_program/module_programs.h"

namespace collage::tensor_program {
namespace {

Result<std::string> type_script(const Type& type) {
  if (type.is_tensor()) return array_script("R.Tensor", type.tensor());
  if (type.is_tuple()) return "R.Tuple(" + TRY(with_commas(type.fields(), type_script)) + ")";
  return unsupported("a value that is a function, in script");
}

/// (…), or (…,) of one.
Result<std::string> tuple_script(size_t size, Result<std::string> fields) {
  return "(" + TRY(std::move(fields)) + (size == 1 ? ",)" : ")");
}

/// "name": value
std::string entry_script(const std::pair<std::string, AttrValue>& entry) {
  return attr_to_string(AttrValue(entry.first)) + ": " + attr_script(entry.second);
}

/// The literal of a single number, if Python has one.
std::string scalar_script(const Tensor& value) {
  if (value.rank() != 0) return "";
  if (value.dtype() == DType::kBool) return value.element_as_int64(0) != 0 ? "True" : "False";
  const std::string list = constant_values(value);  // [0.5], ["inf"]
  return list.find('"') == std::string::npos && !list.empty() ? list.substr(1, list.size() - 2)
                                                              : "";
}

class GraphScript {
 public:
  GraphScript(const Module& module, const ScriptOptions& options)
      : module_(module), options_(options) {}

  Result<std::string> print() {
    text_ = "@ir_module\nclass Module:\n";
    if (!module_.external_mods.empty())
      add_line(text_, 1, "I.module_attrs({{\"external_mods\": {{{}}}}})\n",
               TRY(with_commas(module_.external_mods, [&](const auto& entry) {
                 return external_mod(entry.first, entry.second);
               })));
    for (const auto& [name, function] : module_.abstract_functions) {
      if (const Program* program = defined_program(*function))
        text_ += TRY(program_script(name, *program).with_context(name));
      else
        TRY(external(name, *function));
      text_ += "\n";
    }
    for (const auto& [name, function] : module_.functions) {
      names_ = {};
      used_ = NameSupply();
      for (const auto& [other, defined] : module_.functions) used_.reserve(other);
      for (const auto& [other, defined] : module_.abstract_functions) used_.reserve(other);
      TRY(this->function(TRY(script_name(name)), *function, 1).with_context(name));
      text_ += "\n";
    }
    text_.pop_back();
    return std::move(text_);
  }

 private:
  /// "symbol": ("target", "variant", R.const(…))
  Result<std::string> external_mod(const std::string& symbol, const ExternalMod& mod) {
    const auto quoted = [](const std::string& text) { return attr_to_string(AttrValue(text)); };
    return fmt::format("{}: ({}, {}, {})", quoted(symbol), quoted(mod.target), quoted(mod.variant),
                       TRY(definition(mod.code)));
  }

  Status external(const std::string& name, const AbstractFunction& function) {
    const ExternalDeclaration* declared = declared_external(function);
    if (declared == nullptr)
      return unsupported("{} is neither a program nor an external function", name);
    const std::vector<Type>& params = declared->params;
    std::string rest;
    if (declared->result) rest += ", " + TRY(type_script(*declared->result));
    for (const auto& [attr, value] : declared->attrs.entries())
      rest += fmt::format(", {}={}", TRY(script_name(attr)), attr_script(value));
    if (!declared->updates.empty())
      rest += fmt::format(", updates={}", attr_script(declared->updates));
    if (declared->has_effects) rest += ", effects=True";
    add_line(text_, 1, "{} = R.extern({}, {}{})", TRY(script_name(name)),
             attr_to_string(AttrValue(declared->label)),
             TRY(tuple_script(params.size(), with_commas(params, type_script))), rest);
    return {};
  }

  /// A name of Python's that nothing else has in the function.
  std::string fresh(const std::string& wanted) {
    std::string name = NameSupply().fresh(wanted);  // of letters that names have
    if (!script_name(name).ok()) name = "v_" + name;
    return used_.fresh(name);
  }

  Status function(const std::string& name, const FunctionNode& function, int level) {
    const auto param = [&](const Expr& expr) -> Result<std::string> {
      return (names_[expr.get()] = fresh(as<VarNode>(expr)->name)) + ": " +
             TRY(type_script(expr->type()));
    };
    const std::string params = TRY(with_commas(function.params, param));
    add_line(text_, level, "@R.function");
    add_line(text_, level++, "def {}({}) -> {}:", name, params,
             TRY(type_script(function.result_type())));
    const std::string attrs = TRY(with_commas(function.attrs.entries(), entry_script));
    if (!attrs.empty()) add_line(text_, level, "R.func_attr({{{}}})", attrs);
    std::vector<Expr> bound;
    for (const Expr& expr : post_order(function.body)) {
      if (const auto* literal = as<FunctionNode>(expr)) {
        const std::string local = fresh("fused");
        TRY(this->function(local, *literal, level));
        names_[expr.get()] = local;
      } else if (!is_inline(expr)) {
        bound.push_back(expr);
      }
    }
    if (!bound.empty()) {
      add_line(text_, level, "with R.dataflow():");
      size_t values = 0, weights = 0;
      for (const Expr& expr : bound) {
        const bool constant = expr->kind() == ExprKind::kConstant;
        const std::string value = TRY(definition(expr));
        const std::string local =
            fresh(constant ? fmt::format("w{}", weights++) : fmt::format("lv{}", values++));
        const std::string type = options_.show_types ? ": " + TRY(type_script(expr->type())) : "";
        add_line(text_, level + 1, "{}{} = {}", local, type, value);
        names_[expr.get()] = local;
      }
      Expr output = function.body;
      while (const auto* item = as<TupleGetItemNode>(output)) output = item->tuple;
      add_line(text_, level + 1, "R.output({})", TRY(atom(output)));
    }
    add_line(text_, level, "return {}", TRY(atom(function.body)));
    return {};
  }

  static bool is_inline(const Expr& expr) {
    if (const auto* constant = as<ConstantNode>(expr))
      return !scalar_script(constant->value).empty();
    return expr->kind() == ExprKind::kVar || expr->kind() == ExprKind::kGlobalVar ||
           expr->kind() == ExprKind::kTupleGetItem;
  }

  Result<std::string> atom(const Expr& expr) {
    if (const auto* item = as<TupleGetItemNode>(expr))
      return fmt::format("{}[{}]", TRY(atom(item->tuple)), item->index);
    if (const auto* global = as<GlobalVarNode>(expr)) return script_name(global->name);
    if (const auto found = names_.find(expr.get()); found != names_.end()) return found->second;
    const auto* constant = as<ConstantNode>(expr);
    if (constant == nullptr) return unsupported("a value of another function");
    return fmt::format("R.const({}, \"{}\")", scalar_script(constant->value),
                       dtype_name(constant->value.dtype()));
  }

  Result<std::string> atoms(const std::vector<Expr>& exprs) {
    return with_commas(exprs, [&](const Expr& expr) { return atom(expr); });
  }

  Result<std::string> definition(const Expr& expr) {
    if (const auto* constant = as<ConstantNode>(expr)) {
      const Tensor& value = constant->value;
      if (value.size() <= options_.most_printed)
        return fmt::format("R.const({})", constant_entry(value));
      return fmt::format("R.const(shape={}, dtype=\"{}\")", shape_script(value.shape()),
                         dtype_name(value.dtype()));
    }
    if (const auto* tuple = as<TupleNode>(expr))
      return tuple_script(tuple->fields.size(), atoms(tuple->fields));
    const auto* call = as<CallNode>(expr);
    COLLAGE_CHECK(call != nullptr, "expression of an unknown kind");
    const std::string args = TRY(atoms(call->args));
    const std::string separator = args.empty() ? "" : ", ";
    if (call->op != nullptr) {
      const std::string attrs =
          TRY(with_commas(stated_attrs(*call), [](const auto& entry) -> Result<std::string> {
            return TRY(keyword_argument_script(entry.first)) + "=" + attr_script(entry.second);
          }));
      return fmt::format("R.{}({}{}{})", call->op->name, args, attrs.empty() ? "" : separator,
                         attrs);
    }
    const std::string callee = TRY(atom(call->callee));
    const auto* global = as<GlobalVarNode>(call->callee);
    const auto found = global != nullptr ? module_.abstract_functions.find(global->name)
                                         : module_.abstract_functions.end();
    if (found == module_.abstract_functions.end()) return fmt::format("{}({})", callee, args);
    const ExternalDeclaration* declared = declared_external(*found->second);
    if (declared != nullptr && !declared->result)
      return fmt::format("R.call_packed({}{}{})", callee, separator, args);
    const std::string result =
        expr->type().is_tensor()
            ? fmt::format("{}, dtype=\"{}\"", shape_script(expr->tensor_type().shape),
                          dtype_name(expr->tensor_type().dtype))
            : TRY(type_script(expr->type()));
    return fmt::format("R.{}({}, {}, {})", declared != nullptr ? "call_dps_packed" : "call_tir",
                       callee, TRY(tuple_script(call->args.size(), args)), result);
  }

  const Module& module_;
  const ScriptOptions options_;
  std::string text_;
  std::unordered_map<const ExprNode*, std::string> names_;
  NameSupply used_;  // in the function that is printed
};

}  // namespace

Result<std::string> to_script(const Module& module, const ScriptOptions& options) {
  return GraphScript(module, options).print();
}

}  // namespace collage::tensor_program
