#include "tensor_program/module_programs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/name_supply.h"
#include "base/printable.h"
#include "ir/effects.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_attrs.h"
#include "ir/text_types.h"
#include "ir/visitor.h"
#include "ops/placement.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"
#include "tensor_program/external_call.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

class ProgramFunction : public AbstractFunction {
 public:
  explicit ProgramFunction(Program program)
      : type_(function_type(program)), program_(std::move(program)) {
    for (const Buffer& buffer : program_.buffers)
      if (!buffer.is_constant) scopes_.push_back(buffer.scope);
    for (const Stage& stage : program_.stages)
      if (stage.is_result) scopes_.push_back(stage.scope);
    if (std::all_of(scopes_.begin(), scopes_.end(), [](auto& scope) { return scope.empty(); }))
      scopes_.clear();
  }
  const Type& type() const override { return type_; }
  std::string to_text() const override { return " {\n" + declarations_text(program_) + "}"; }
  std::string kind_name() const override { return "program"; }
  std::vector<std::string> memory_scopes() const override { return scopes_; }
  const Program& program() const { return program_; }

 private:
  Type type_;
  Program program_;
  std::vector<std::string> scopes_;
};

constexpr const char* kUpdatesAttr = "updates";

class LabelledFunction : public AbstractFunction {
 public:
  LabelledFunction(ExternalDeclaration declaration, Type type)
      : declaration_(std::move(declaration)), type_(std::move(type)) {}
  const Type& type() const override { return type_; }
  std::string to_text() const override {
    std::string params;
    const auto add = [&](const std::string& one) { params += (params.empty() ? "" : ", ") + one; };
    for (const Type& param : type_.params()) add(param.to_string());
    for (const auto& [name, value] : declaration_.attrs.entries())
      add(name + "=" + attr_to_string(value));
    if (!declaration_.updates.empty())
      add(fmt::format("{}={}", kUpdatesAttr, attr_to_string(declaration_.updates)));
    if (declaration_.has_effects) add(fmt::format("{}=1", kEffectsAttr));
    const std::string result = declaration_.result ? " -> " + type_.result().to_string() : "";
    return fmt::format("({}){} = {};", params, result, attr_to_string(declaration_.label));
  }
  std::string kind_name() const override { return "extern"; }
  bool has_effects() const override { return declaration_.has_effects; }
  const ExternalDeclaration& declaration() const { return declaration_; }

 private:
  ExternalDeclaration declaration_;
  Type type_;
};

/// (Tensor[(64, 128), float32], …, k=3) -> Tensor[(64, 32), float32] = "label"; the result may be
/// left out where the label is known.
Result<std::shared_ptr<const AbstractFunction>> read_external(TextReader& reader) {
  const collage::Token start = reader.token();
  TRY(reader.expect("("));
  ExternalDeclaration declaration;
  auto [params, attrs] = TRY(parse_call_arguments<Type>(
      reader, [&] { return parse_type(reader); },
      [&](const std::string&) { return parse_attr_value(reader); }));
  declaration.params = std::move(params);
  TRY(at(start, take_declared(std::move(attrs), declaration)));
  if (TRY(reader.accept("->"))) declaration.result = TRY(parse_type(reader));
  TRY(reader.expect("="));
  const collage::Token label = reader.token();
  if (label.kind != Token::Kind::kString)
    return reader.expected("the label of a function as a string");
  declaration.label = label.text;
  std::shared_ptr<const AbstractFunction> function =
      TRY(at(label, external_function(std::move(declaration))));
  TRY(reader.step());
  TRY(reader.expect(";"));
  return function;
}

/// A call of a program, whose buffers' memory scopes are places of what it reads and makes.
Result<Expr> linked_call(const ProgramFunction& function, const CallNode& call,
                         const std::string& name) {
  const std::vector<std::string> scopes = function.memory_scopes();
  std::vector<DeviceConstraint> places;
  for (const std::string& scope : scopes)
    places.push_back(scope.empty() ? DeviceConstraint()
                                   : TRY(DeviceConstraint::parse("/" + scope)));
  std::vector<Expr> args = call.args;
  std::span<const DeviceConstraint> rest = places;
  for (size_t i = 0; i < args.size() && !places.empty(); ++i, rest = rest.subspan(1))
    args[i] = TRY(placed(args[i], rest.first(1), Placed::kUsed));
  const Expr made = TRY(call_of_program(function.program(), args, name, call.origin()));
  return placed(made, rest, Placed::kComputed);
}

/// The module's functions, and function literals inside, with each call replaced by what the rule
/// gives for it. A literal that stands in several functions stays one.
using CallRule = std::function<Result<Expr>(const Expr& call)>;
Status replace_calls(Module& module, const CallRule& rule) {
  std::map<Expr, Expr> literals;
  std::function<Result<Function>(const Function&)> replaced = [&](const Function& function) {
    Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
      if (rebuilt->kind() == ExprKind::kFunction) {
        Expr& known = literals[rebuilt];
        if (known == nullptr)
          known = TRY(replaced(std::static_pointer_cast<const FunctionNode>(rebuilt)));
        return known;
      }
      return rebuilt->kind() == ExprKind::kCall ? rule(rebuilt) : rebuilt;
    });
    return rewriter.rewrite(function);
  };
  for (auto& [name, function] : module.functions) function = TRY(replaced(function));
  return {};
}

/// Attaches what is called, under a symbol of its own, and declares it.
Result<std::shared_ptr<const AbstractFunction>> attached(Module& module,
                                                         const ExternalModCall& call) {
  ExternalDeclaration declaration{call.symbol, {}, call.result};
  for (int i = 1;; ++i) {
    const auto [place, fresh] = module.external_mods.emplace(declaration.label, call.mod);
    const ExternalMod& there = place->second;
    if (fresh || (there.target == call.mod.target && there.variant == call.mod.variant &&
                  structural_equal(there.code, call.mod.code)))
      break;
    declaration.label = fmt::format("{}_{}", call.symbol, i);
  }
  for (const Expr& arg : call.args) declaration.params.push_back(arg->type());
  return external_function(std::move(declaration));
}

}  // namespace

Result<std::shared_ptr<const AbstractFunction>> abstract_function(const std::string& kind,
                                                                  TextReader& reader) {
  const bool is_skipped = reader.symbols() != nullptr && reader.symbols()->only_headers();
  if (is_skipped && kind == "extern") {
    while (!reader.is(";") && !reader.is(collage::Token::Kind::kEnd)) TRY(reader.step());
    TRY(reader.expect(";"));
    return std::shared_ptr<const AbstractFunction>();
  }
  if (kind == "extern") return read_external(reader);
  const TextReader::Block block = TRY(reader.block());
  if (is_skipped) return std::shared_ptr<const AbstractFunction>();
  const Symbols symbols = reader.symbols() != nullptr ? reader.symbols()->values : Symbols();
  Program program = TRY(parse_declarations(block.text, block.place, check_callable, symbols));
  return program_function(std::move(program));
}

std::shared_ptr<const AbstractFunction> program_function(Program program) {
  return std::make_shared<const ProgramFunction>(std::move(program));
}

Result<std::shared_ptr<const AbstractFunction>> external_function(ExternalDeclaration declaration) {
  const Type type = TRY(external_type(declaration));
  const ExternalFunction* known = find_external(declaration.label);
  declaration.has_effects |= known != nullptr && known->has_effects;
  return std::shared_ptr<const AbstractFunction>(
      std::make_shared<const LabelledFunction>(std::move(declaration), type));
}

const Program* defined_program(const AbstractFunction& function) {
  const auto* program = dynamic_cast<const ProgramFunction*>(&function);
  return program != nullptr ? &program->program() : nullptr;
}

const ExternalDeclaration* declared_external(const AbstractFunction& function) {
  const auto* labelled = dynamic_cast<const LabelledFunction*>(&function);
  return labelled != nullptr ? &labelled->declaration() : nullptr;
}

std::set<std::string> declared_labels(const Module& module) {
  std::set<std::string> labels;
  for (const auto& [name, function] : module.abstract_functions)
    if (const ExternalDeclaration* external = declared_external(*function))
      labels.insert(external->label);
  return labels;
}

Status take_declared(Attrs attrs, ExternalDeclaration& declaration) {
  for (const auto& [name, value] : attrs.entries()) {
    const auto* whole = std::get_if<int64_t>(&value);
    if (name == kEffectsAttr) {
      const auto* flag = std::get_if<bool>(&value);
      if (flag == nullptr && (whole == nullptr || *whole < 0 || *whole > 1))
        return bad_model("{} is 0 or 1", name);
      declaration.has_effects = flag != nullptr ? *flag : *whole == 1;
    } else if (name == kUpdatesAttr) {
      const auto* list = std::get_if<Ints>(&value);
      const Ints updates = list != nullptr ? *list : whole != nullptr ? Ints{*whole} : Ints{-1};
      for (const int64_t param : updates)
        if (param < 0 || param >= static_cast<int64_t>(declaration.params.size()))
          return bad_model("{} lists parameters, from 0", name);
      declaration.updates = updates;
    } else {
      declaration.attrs.set(name, value);
    }
  }
  return {};
}

Result<bool> link_programs(Module& module) {
  if (module.abstract_functions.empty()) return false;
  const auto by_operator = [&](const Expr& expr) -> Result<Expr> {
    const auto* call = as<CallNode>(expr);
    const auto* global = as<GlobalVarNode>(call->callee);
    if (global == nullptr) return expr;
    const auto found = module.abstract_functions.find(global->name);
    if (found == module.abstract_functions.end()) return expr;
    const AbstractFunction* function = found->second.get();
    if (const auto* labelled = dynamic_cast<const LabelledFunction*>(function)) {
      const std::string& label = labelled->declaration().label;
      if (const auto mod = module.external_mods.find(label); mod != module.external_mods.end())
        return make_external_mod_call({label, mod->second, call->args, expr->type(), global->name},
                                      call->origin());
      OperatorWithAttrs called =
          TRY(external_operator(labelled->declaration(), call->args, global->name));
      Expr linked = TRY(
          make_call(called.op, std::move(called.args), std::move(called.attrs), call->origin()));
      if (!(linked->type() == expr->type()))
        return bad_model("@{} is declared to give {}, {} gives {}", global->name,
                         expr->type().to_string(), labelled->declaration().label,
                         linked->type().to_string());
      return linked;
    }
    const auto* program = dynamic_cast<const ProgramFunction*>(function);
    if (program == nullptr) return expr;
    return linked_call(*program, *call, global->name);
  };
  TRY(replace_calls(module, by_operator));
  std::erase_if(module.abstract_functions, [](const auto& entry) {
    return dynamic_cast<const ProgramFunction*>(entry.second.get()) != nullptr ||
           dynamic_cast<const LabelledFunction*>(entry.second.get()) != nullptr;
  });
  module.external_mods.clear();
  return true;
}

Result<Module> named_programs(const Module& module) {
  Module named = module;
  NameSupply names;
  for (const auto& [name, function] : module.functions) names.reserve(name);
  for (const auto& [name, function] : module.abstract_functions) names.reserve(name);
  std::map<std::pair<std::string, std::string>, Expr> known;  // by name and definition
  size_t unnamed = 0;
  const auto by_name = [&](const Expr& expr) -> Result<Expr> {
    const auto* call = as<CallNode>(expr);
    if (call->op == nullptr || (call->op->name != kCallOp && call->op->name != kExternalOp &&
                                call->op->name != kExternalModOp))
      return expr;
    std::shared_ptr<const AbstractFunction> function;
    std::vector<Expr> args = call->args;
    if (std::optional<ExternalModCall> mod = external_mod_call(*call)) {
      function = TRY(attached(named, *mod));
      args = std::move(mod->args);
    } else if (std::optional<DeclaredCall> external = TRY(declared_call(*call))) {
      args = std::move(external->args);
      Type type = TRY(external_type(external->declaration));
      external->declaration.result.reset();
      function = std::make_shared<const LabelledFunction>(std::move(external->declaration),
                                                          std::move(type));
    } else {
      function = std::make_shared<const ProgramFunction>(TRY(program_of_call(*call)));
    }
    const std::string& wanted = call->attrs.string("name");
    Expr& global = known[{wanted, function->to_text()}];
    if (global == nullptr) {
      const std::string name =
          names.fresh(wanted.empty() ? fmt::format("program{}", unnamed++) : wanted);
      global = make_global_var(name, function->type());
      named.abstract_functions[name] = std::move(function);
    }
    return make_function_call(global, std::move(args), expr->origin());
  };
  TRY(replace_calls(named, by_name));
  return named;
}

}  // namespace collage::tensor_program
