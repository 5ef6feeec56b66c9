#include "ir/text_printer.h"

#include <fmt/format.h>

#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "base/files.h"
#include "base/hash.h"
#include "ir/op.h"
#include "ir/side_file.h"
#include "ir/structural.h"
#include "ir/text_attrs.h"
#include "ir/text_constants.h"
#include "ir/visitor.h"

namespace collage {

namespace {

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

std::string quoted_name(const std::string& name) {
  return is_identifier(name) ? name : attr_to_string(AttrValue(name));
}

class Printer {
 public:
  Printer(const PrintOptions& options, bool canonical) : options_(options), canonical_(canonical) {}

  void global(const std::string& name, const Function& function) {
    used_names_.clear();
    next_binding_ = 0;
    text_ += fmt::format("def @{}", quoted_name(name));
    signature_and_body(*function, 0);
    text_ += "\n";
  }

  void external_mod(const std::string& symbol, const ExternalMod& mod) {
    const auto quoted = [](const std::string& text) { return attr_to_string(AttrValue(text)); };
    text_ += fmt::format("external_mods[{}] = ({}, {}, {});\n", quoted(symbol), quoted(mod.target),
                         quoted(mod.variant), atom(mod.code));
  }

  void literal(const FunctionNode& function, int indent) {
    text_ += "fn ";
    signature_and_body(function, indent);
  }

  std::string finish() && {
    bool any = false;
    for (const std::string& entry : entries_) any = any || entry != "null";
    if (!any) return std::move(text_);
    text_ += "\n#[metadata]\n{\n  \"relay.Constant\": [";
    for (size_t i = 0; i < entries_.size(); ++i) text_ += (i ? ",\n    " : "\n    ") + entries_[i];
    text_ += "\n  ]";
    if (uses_side_file_)
      text_ += fmt::format(",\n  \"side_file\": {}", attr_to_string(AttrValue(options_.side_file)));
    text_ += "\n}\n";
    return std::move(text_);
  }

  std::string& text() { return text_; }

 private:
  void signature_and_body(const FunctionNode& function, int indent) {
    text_ += "(";
    const char* separator = "";
    for (const Expr& param : function.params) {
      text_ += fmt::format("{}{}: {}", separator, variable(param), param->type().to_string());
      separator = ", ";
    }
    for (const auto& [name, value] : function.attrs.entries()) {
      if (canonical_ &&
          (name == "Compiler" || name == "global_symbol" || name == "exclude" || name == "pin"))
        continue;
      text_ += fmt::format("{}{}={}", separator, quoted_name(name), attr_to_string(value));
      separator = ", ";
    }
    text_ += fmt::format(") -> {} {{\n", function.result_type().to_string());
    std::string margin(static_cast<size_t>(indent) + 2, ' ');
    for (const Expr& expr : post_order(function.body)) {
      if (expr == function.body || is_atom(expr)) continue;
      // A function literal prints its bindings inside its own: the number is taken first.
      std::string name = fmt::format("%{}", next_binding_++);
      text_ += fmt::format("{}{} = ", margin, name);
      definition(expr, indent + 2);
      if (options_.show_types && !expr->type().is_function())
        text_ += fmt::format(" /* ty={} */", expr->type().to_string());
      text_ += ";\n";
      names_[expr.get()] = name;
    }
    text_ += margin;
    if (is_atom(function.body)) {
      text_ += atom(function.body);
    } else {
      definition(function.body, indent + 2);
    }
    text_ += fmt::format("\n{}}}", std::string(static_cast<size_t>(indent), ' '));
  }

  static bool is_atom(const Expr& expr) {
    return expr->kind() == ExprKind::kVar || expr->kind() == ExprKind::kConstant ||
           expr->kind() == ExprKind::kGlobalVar || expr->kind() == ExprKind::kTupleGetItem;
  }

  void definition(const Expr& expr, int indent) {
    if (const auto* function = as<FunctionNode>(expr)) return literal(*function, indent);
    if (const auto* tuple = as<TupleNode>(expr)) {
      text_ += "(" + atoms(tuple->fields) + (tuple->fields.size() == 1 ? ",)" : ")");
      return;
    }
    const auto* call = as<CallNode>(expr);
    COLLAGE_CHECK(call != nullptr, "expression of an unknown kind");
    text_ += call->op != nullptr ? call->op->name : atom(call->callee);
    text_ += "(" + atoms(call->args);
    if (call->op != nullptr) {
      const char* separator = call->args.empty() ? "" : ", ";
      for (const auto& [name, value] : stated_attrs(*call)) {
        if (canonical_ && name == kNameAttribute) continue;
        text_ += fmt::format("{}{}={}", separator, quoted_name(name), attr_to_string(value));
        separator = ", ";
      }
    }
    text_ += ")";
  }

  std::string atoms(const std::vector<Expr>& exprs) {
    std::string text;
    for (size_t i = 0; i < exprs.size(); ++i) text += (i ? ", " : "") + atom(exprs[i]);
    return text;
  }

  std::string atom(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kVar:
        return variable(expr);
      case ExprKind::kConstant:
        return constant(*as<ConstantNode>(expr));
      case ExprKind::kGlobalVar:
        return "@" + quoted_name(as<GlobalVarNode>(expr)->name);
      case ExprKind::kTupleGetItem: {
        const auto* item = as<TupleGetItemNode>(expr);
        return fmt::format("{}.{}", atom(item->tuple), item->index);
      }
      default:
        return names_.at(expr.get());
    }
  }

  std::string variable(const Expr& var) {
    auto it = names_.find(var.get());
    if (it != names_.end()) return it->second;
    std::string name;
    if (canonical_) {
      name = fmt::format("p{}", next_param_++);
    } else {
      const std::string& wanted = as<VarNode>(var)->name;
      name = wanted;
      for (int i = 1; !used_names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
      name = quoted_name(name);
    }
    return names_[var.get()] = "%" + name;
  }

  std::string constant(const ConstantNode& node) {
    bool known = options_.by_type_only.count(node.value.raw()) == 0;
    if (std::optional<std::string> literal = scalar_literal(node.value); literal && known)
      return *literal;
    auto [it, fresh] = constants_.emplace(&node, entries_.size());
    if (fresh) entries_.push_back(entry(node.value));
    return fmt::format("meta[relay.Constant][{}] /*{}*/", it->second, node.type().to_string());
  }

  // Real numbers and quantised ones: nothing that is decided depends on the values of many.
  static bool holds_weights(DType dtype) {
    return is_float(dtype) || dtype == DType::kInt8 || dtype == DType::kUInt8;
  }

  std::string entry(const Tensor& value) {
    using Constants = PrintOptions::Constants;
    if (options_.by_type_only.count(value.raw()) != 0) return "null";
    // Reseeded weights, biases among them, must not change a canonical text.
    int64_t inline_limit = canonical_ && holds_weights(value.dtype()) ? 1 : options_.inline_limit;
    if (options_.constants == Constants::kMeta || value.size() <= inline_limit)
      return constant_entry(value);
    if (options_.constants == Constants::kShapeOnly) {
      if (holds_weights(value.dtype())) return "null";
      if (std::optional<std::string> uniform = uniform_entry(value)) return *uniform;
      return fmt::format("{{\"sha256\": \"{}\"}}",
                         sha256_hex({static_cast<const char*>(value.raw()), value.bytes()}));
    }
    uses_side_file_ = true;
    size_t index = side_count_++;
    if (options_.side_tensors != nullptr) options_.side_tensors->push_back(value);
    return fmt::format("{{\"side\": {}}}", index);
  }

  const PrintOptions& options_;
  const bool canonical_;
  std::string text_ = "#[version = \"0.0.5\"]\n";
  std::unordered_map<const ExprNode*, std::string> names_;
  std::unordered_set<std::string> used_names_;
  size_t next_binding_ = 0, next_param_ = 0;
  std::unordered_map<const ConstantNode*, size_t> constants_;
  std::vector<std::string> entries_;
  bool uses_side_file_ = false;
  size_t side_count_ = 0;
};

}  // namespace

std::string to_text(const Module& module, const PrintOptions& options) {
  Printer printer(options, false);
  for (const auto& [name, function] : module.abstract_functions)
    printer.text() +=
        fmt::format("{} @{}{}\n", function->kind_name(), quoted_name(name), function->to_text());
  for (const auto& [symbol, mod] : module.external_mods) printer.external_mod(symbol, mod);
  for (const auto& [name, function] : module.functions) printer.global(name, function);
  return std::move(printer).finish();
}

std::string to_text(const Function& function, const PrintOptions& options) {
  Printer printer(options, false);
  printer.literal(*function, 0);
  printer.text() += "\n";
  return std::move(printer).finish();
}

std::string canonical_text(const Function& function) {
  PrintOptions options;
  options.constants = PrintOptions::Constants::kShapeOnly;
  Printer printer(options, true);
  printer.literal(*function, 0);
  printer.text() += "\n";
  return std::move(printer).finish();
}

Status save_module(const Module& module, const std::filesystem::path& path) {
  std::filesystem::path side = path;
  side += ".bin";
  std::vector<Tensor> tensors;
  PrintOptions options;
  options.constants = PrintOptions::Constants::kSideFile;
  options.side_file = side.filename().string();
  options.side_tensors = &tensors;
  std::string text = to_text(module, options);
  if (!tensors.empty()) TRY(write_side_file(side, tensors));
  return write_file_atomically(path, text);
}

}  // namespace collage
