// Modules as script: script.h has the form.
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "base/name_supply.h"
#include "ir/op.h"
#include "ir/text_constants.h"
#include "ir/visitor.h"
#include "tensor_program/module_programs.h"
#include "tensor_program/script/script.h"
#include "tensor_program/script/script_program.h"

namespace collage::tensor_program {
namespace {

std::string tensor_script(const TensorType& type) {
  return fmt::format("R.Tensor({}, \"{}\")", shape_script(type.shape), dtype_name(type.dtype));
}

Result<std::string> types_script(const std::vector<Type>& types);

Result<std::string> type_script(const Type& type) {
  if (type.is_tensor()) return tensor_script(type.tensor());
  if (type.is_tuple()) return "R.Tuple(" + TRY(types_script(type.fields())) + ")";
  return unsupported("a value that is a function, in script");
}

Result<std::string> types_script(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + TRY(type_script(type));
  return text;
}

Result<std::string> attr_script(const AttrValue& value) {
  const auto real = [](double number) -> Result<std::string> {
    if (std::isfinite(number)) return real_script(number, DType::kFloat64);
    return unsupported("a list of reals that are not finite, in script");
  };
  if (const auto* number = std::get_if<double>(&value)) {
    if (std::isfinite(*number)) return real(*number);
    return fmt::format("float(\"{}\")", *number);
  }
  const auto* reals = std::get_if<std::vector<double>>(&value);
  if (reals == nullptr) return attr_to_string(value);
  std::string text;
  for (const double number : *reals) text += (text.empty() ? "" : ", ") + TRY(real(number));
  return "[" + text + "]";
}

/// The literal of a single number, if a number of Python is that value.
std::string number_script(const Tensor& value) {
  if (value.rank() != 0 || value.dtype() == DType::kFloat16 || value.dtype() == DType::kBFloat16)
    return "";
  if (value.dtype() == DType::kBool) return value.element_as_int64(0) != 0 ? "True" : "False";
  if (value.dtype() == DType::kUInt64) return std::to_string(*value.data<uint64_t>());
  if (!is_float(value.dtype())) return std::to_string(value.element_as_int64(0));
  const double number = value.element_as_double(0);
  if (!std::isfinite(number)) return "";
  const std::string text = real_script(number, value.dtype());
  const double read = std::strtod(text.c_str(), nullptr);  // as the parser does
  return value.dtype() == DType::kFloat64 || static_cast<float>(read) == *value.data<float>()
             ? text
             : real_script(number, DType::kFloat64);
}

class GraphScript {
 public:
  GraphScript(const Module& module, const ScriptOptions& options)
      : module_(module), options_(options) {}

  Result<std::string> print() {
    text_ = "@ir_module\nclass Module:\n";
    for (const auto& [name, function] : module_.abstract_functions) {
      if (const Program* program = defined_program(*function)) {
        text_ += TRY(program_script(name, *program, "    ").with_context(name)) + "\n";
        continue;
      }
      const auto stated = stated_label(*function);
      if (!stated) return unsupported("{} is neither a program nor an external function", name);
      const Type& type = function->type();
      std::string params = TRY(types_script(type.params()));
      if (type.params().size() == 1) params += ",";
      if (stated->states_result) params += "), " + TRY(type_script(type.result()));
      text_ += fmt::format("    {} = R.extern({}, ({}{}\n\n", TRY(script_name(name)),
                           attr_to_string(AttrValue(stated->label)), params,
                           stated->states_result ? ")" : "))");
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
  template <typename... Args>
  void line(int level, fmt::format_string<Args...> format, Args&&... args) {
    text_ += std::string(4 * static_cast<size_t>(level), ' ') +
             fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  /// A name of Python's that nothing else has in the function.
  std::string fresh(const std::string& wanted) {
    std::string name = NameSupply().fresh(wanted);  // of letters that names have
    if (!script_name(name).ok()) name = "v_" + name;
    return used_.fresh(name);
  }

  Status function(const std::string& name, const FunctionNode& function, int level) {
    std::string params;
    for (const Expr& param : function.params) {
      names_[param.get()] = fresh(as<VarNode>(param)->name);
      params += fmt::format("{}{}: {}", params.empty() ? "" : ", ", names_[param.get()],
                            TRY(type_script(param->type())));
    }
    line(level, "@R.function");
    line(level, "def {}({}) -> {}:", name, params, TRY(type_script(function.result_type())));
    ++level;
    std::string attrs;
    for (const auto& [attr, value] : function.attrs.entries())
      attrs += fmt::format("{}{}: {}", attrs.empty() ? "" : ", ", attr_to_string(AttrValue(attr)),
                           TRY(attr_script(value)));
    if (!attrs.empty()) line(level, "R.func_attr({{{}}})", attrs);
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
      line(level, "with R.dataflow():");
      size_t values = 0, weights = 0;
      for (const Expr& expr : bound) {
        const bool constant = expr->kind() == ExprKind::kConstant;
        const std::string value = TRY(definition(expr));
        const std::string local =
            fresh(constant ? fmt::format("w{}", weights++) : fmt::format("lv{}", values++));
        const std::string type =
            options_.show_types ? ": " + TRY(type_script(expr->type())) : std::string();
        line(level + 1, "{}{} = {}", local, type, value);
        names_[expr.get()] = local;
      }
      Expr output = function.body;
      while (const auto* item = as<TupleGetItemNode>(output)) output = item->tuple;
      line(level + 1, "R.output({})", TRY(atom(output)));
    }
    line(level, "return {}", TRY(atom(function.body)));
    return {};
  }

  static bool is_inline(const Expr& expr) {
    if (const auto* constant = as<ConstantNode>(expr))
      return !number_script(constant->value).empty();
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
    return fmt::format("R.const({}, \"{}\")", number_script(constant->value),
                       dtype_name(constant->value.dtype()));
  }

  Result<std::string> atoms(const std::vector<Expr>& exprs) {
    std::string text;
    for (const Expr& expr : exprs) text += (text.empty() ? "" : ", ") + TRY(atom(expr));
    return text;
  }
  Result<std::string> tuple(const std::vector<Expr>& fields) {
    return "(" + TRY(atoms(fields)) + (fields.size() == 1 ? ",)" : ")");
  }

  Result<std::string> definition(const Expr& expr) {
    if (const auto* constant = as<ConstantNode>(expr)) {
      const Tensor& value = constant->value;
      if (value.size() <= options_.most_printed)
        return fmt::format("R.const({})", constant_entry(value));
      return fmt::format("R.const(shape={}, dtype=\"{}\")", shape_script(value.shape()),
                         dtype_name(value.dtype()));
    }
    if (const auto* fields = as<TupleNode>(expr)) return tuple(fields->fields);
    const auto* call = as<CallNode>(expr);
    COLLAGE_CHECK(call != nullptr, "expression of an unknown kind");
    if (call->op != nullptr) return operator_call(*call);
    const auto* global = as<GlobalVarNode>(call->callee);
    const auto found = global != nullptr ? module_.abstract_functions.find(global->name)
                                         : module_.abstract_functions.end();
    if (found == module_.abstract_functions.end())
      return fmt::format("{}({})", TRY(atom(call->callee)), TRY(atoms(call->args)));
    const auto stated = stated_label(*found->second);
    if (stated && !stated->states_result)
      return fmt::format("R.call_packed({}{}{})", global->name, call->args.empty() ? "" : ", ",
                         TRY(atoms(call->args)));
    const std::string result =
        expr->type().is_tensor()
            ? fmt::format("{}, dtype=\"{}\"", shape_script(expr->tensor_type().shape),
                          dtype_name(expr->tensor_type().dtype))
            : TRY(type_script(expr->type()));
    return fmt::format("R.{}({}, {}, {})", stated ? "call_dps_packed" : "call_tir", global->name,
                       TRY(tuple(call->args)), result);
  }

  Result<std::string> operator_call(const CallNode& call) {
    std::string args = TRY(atoms(call.args));
    for (const AttrSpec& spec : call.op->attrs) {
      const AttrValue* value = call.attrs.find(spec.name);
      if (value == nullptr || (!spec.required && *value == spec.default_value)) continue;
      args += fmt::format("{}{}={}", args.empty() ? "" : ", ", TRY(script_name(spec.name)),
                          TRY(attr_script(*value)));
    }
    return fmt::format("R.{}({})", call.op->name, args);
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
