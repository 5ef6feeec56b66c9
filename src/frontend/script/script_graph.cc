#include "frontend/script/script_graph.h"

#include <algorithm>

#include "frontend/script/script_calls.h"
#include "ir/op.h"
#include "ir/text_attrs.h"
#include "tensor_program/external.h"
#include "tensor_program/module_programs.h"

namespace collage::tensor_program {
namespace {

/// A call of a definition by its name, or by a label.
struct DefinitionCall {
  Token start, target = {};
  std::vector<Expr> args = {};
  Attrs attrs = {};
};

Result<Expr> checked(const Token& here, Expr value, const std::optional<Type>& stated) {
  if (!stated || *stated == value->type()) return value;
  return at(here, bad_model("the value is a {}, annotated as {}", value->type().to_string(),
                            stated->to_string()));
}

class ScriptGraph {
 public:
  ScriptGraph(ScriptModule& module, const ScriptSignature& signature)
      : module_(module), reader_(module.reader), signature_(signature) {}

  Result<Function> read() {
    for (const Expr& param : signature_.params)
      if (!locals_.emplace(as<VarNode>(param)->name, param).second)
        return at(signature_.start, bad_model("{} stands twice", as<VarNode>(param)->name));
    TRY(read_block(reader_, signature_.start.place.column, [&] { return statement(); }));
    if (result_ == nullptr) return at(signature_.start, bad_model("nothing is returned"));
    const Function function = make_function(signature_.params, result_, attrs_);
    module_.calls[function] = std::move(calls_);
    return function;
  }

 private:
  Status statement() {
    const Token start = reader_.token();
    if (result_ != nullptr) return at(start, bad_model("nothing follows return"));
    if (start.kind == Token::Kind::kString) return skip_line(reader_);  // documentation
    if (TRY(accept_symbol(reader_))) return {};
    if (start.is("with")) return dataflow(start);
    if (start.is("@")) return function();
    if (TRY(reader_.accept("return"))) {
      const Token here = reader_.token();
      result_ = TRY(checked(here, TRY(expression()), signature_.result));
      return reader_.is(",") ? reader_.expected("one value: (a, b) is a tuple") : Status();
    }
    if (TRY(followed_by(reader_, "("))) {
      if (word(start) == "output") return output();
      if (word(start) == "func_attr" || word(start) == "attrs") return attributes();
      if (word(start) == "call_packed") return update();
    }
    return binding();
  }

  /// with R.dataflow(): what it binds is known in it alone, but for what R.output names.
  Status dataflow(const Token& start) {
    TRY(reader_.step());
    if (word(reader_.token()) != "dataflow" || bound_) return reader_.expected("R.dataflow()");
    TRY(enter(reader_));
    TRY(reader_.expect(")"));
    bound_.emplace();
    TRY(read_block(reader_, start.place.column, [&] { return statement(); }));
    for (const auto& [name, is_output] : *bound_)
      if (!is_output) locals_.erase(name);
    bound_.reset();
    return {};
  }

  Status output() {
    TRY(enter(reader_));
    if (!bound_) return at(reader_.token(), bad_model("R.output outside of R.dataflow()"));
    TRY(reader_.list(")", [&]() -> Result<bool> {
      const Token place = reader_.token();
      if (locals_.count(TRY(read_name(reader_, "a name"))) == 0)
        return at(place, bad_model("there is no {} here", place.text));
      return (*bound_)[place.text] = true;
    }));
    return {};
  }

  Status attributes() {
    TRY(enter(reader_));
    const Attrs read = TRY(read_attrs(reader_));
    for (const auto& [name, value] : read.entries())
      attrs_.set(name == "primitive" ? "Primitive" : name, value);
    return reader_.expect(")");
  }

  /// @R.function, and a function that this one calls.
  Status function() {
    TRY(reader_.step());
    if (word(reader_.token()) != "function" && word(reader_.token()) != "func")
      return reader_.expected("R.function");
    TRY(reader_.step());
    const Token start = reader_.token();
    TRY(reader_.expect("def"));
    const std::string name = TRY(read_name(reader_, "the name of a function"));
    const ScriptSignature signature = TRY(read_script_signature(module_, start, name));
    bind(name, TRY(read_script_body(module_, signature)));
    return {};
  }

  void bind(const std::string& name, Expr value) {
    locals_.insert_or_assign(name, std::move(value));
    if (bound_) bound_->emplace(name, false);
  }

  /// name = expression, or name: type = expression
  Status binding() {
    const std::string name = TRY(read_name(reader_, "a statement"));
    std::optional<Type> stated;
    if (TRY(reader_.accept(":"))) stated = TRY(read_script_type(module_));
    TRY(reader_.expect("="));
    const Token here = reader_.token();
    bind(name, TRY(checked(here, TRY(expression(stated)), stated)));
    return {};
  }

  /// `stated`: the type that a binding states.
  Result<Expr> expression(const std::optional<Type>& stated = std::nullopt) {
    TextReader::Nesting nesting(reader_);
    TRY(reader_.check_nesting());
    const Token start = TRY(take(reader_));
    Expr value;
    if (start.is("(") || start.is("["))
      value = TRY(parse_tuple(reader_, start, [&] { return expression(); }));
    else if (start.kind != Token::Kind::kName)
      return at(start, bad_model("expected an expression, found {}", start.describe()));
    else
      value = TRY(reader_.accept("(")) ? TRY(call(start, stated)) : TRY(named(start));
    while (reader_.is("[") && !end_of_line(reader_).ok()) {
      TRY(reader_.step());
      const int64_t index = TRY(read_extent(reader_, module_.scope));
      TRY(reader_.expect("]"));
      Expr& item = items_[{value.get(), index}];
      if (item == nullptr) item = TRY(at(start, make_tuple_get_item(value, index)));
      value = item;
    }
    return value;
  }

  /// A value or a function that this one or the module knows.
  Result<Expr> named(const Token& name) const {
    if (const Expr known = find(name.text); known != nullptr) return known;
    return at(name, bad_model("there is no {} here", name.text));
  }
  Expr find(std::string name) const {
    if (const auto local = locals_.find(name); local != locals_.end()) return local->second;
    for (const std::string& prefix : {std::string("cls."), module_.name + "."})
      if (name.starts_with(prefix)) name = name.substr(prefix.size());
    const auto global = module_.globals.find(name);
    return global != module_.globals.end() ? global->second : nullptr;
  }

  std::string origin(const Token& token) const {
    return module_.options.positions ? token.place.to_string() : "";
  }

  /// Behind the '('.
  Result<Expr> call(const Token& start, const std::optional<Type>& stated) {
    if (word(start) == "const") return read_script_constant(module_, start);
    if (word(start) == "call_tir" || word(start) == "call_dps_packed") return stated_call(start);
    if (word(start) == "call_packed") return called(TRY(packed_call(start)), stated);
    const Expr callee = find(start.text);
    if (callee == nullptr) return operator_call(start);
    std::vector<Expr> args = TRY(reader_.list(")", [&] { return expression(); }));
    return function_call(start, callee, std::move(args));
  }

  Result<Expr> operator_call(const Token& start) {
    const bool flat = word(start) == "flatten";
    const std::string name(flat ? "reshape" : word(start));
    const OpDef* op = find_op(name);
    if (op == nullptr) op = find_op("nn." + name);
    if (op == nullptr) return at(start, unsupported("unknown operator '{}'", start.text));
    auto [args, read] = TRY(parse_call_arguments(
        reader_, [&] { return expression(); },
        [&](const std::string& attr) { return attribute(*op, attr); }));
    Attrs attrs;
    for (const auto& [attr, value] : read.entries()) attrs.set(keyword_argument(attr), value);
    if (flat && args.size() == 1 && args[0]->type().is_tensor())
      attrs.set("newshape", Ints{num_elements(args[0]->tensor_type().shape)});
    const Expr made =
        TRY(at(start, make_call(*op, std::move(args), std::move(attrs), origin(start))));
    if (has_effects(*as<CallNode>(made))) calls_.push_back(made);
    return made;
  }

  /// Padding of half the default's length is the same at both ends: padding=(1, 1).
  Result<AttrValue> attribute(const OpDef& op, const std::string& name) {
    AttrValue value = TRY(parse_attr_value(reader_));
    auto* list = std::get_if<Ints>(&value);
    for (const AttrSpec& spec : op.attrs) {
      const auto* whole = std::get_if<Ints>(&spec.default_value);
      if (list == nullptr || whole == nullptr || spec.name != name || name != "padding") continue;
      const Ints half = *list;
      if (2 * half.size() == whole->size()) list->insert(list->end(), half.begin(), half.end());
    }
    return value;
  }

  /// "label", R.extern("label"[, k=3]) or the name of a definition.
  Status read_target(DefinitionCall& call) {
    const bool is_extern =
        word(reader_.token()) == "extern" || word(reader_.token()) == "ExternFunc";
    if (is_extern) TRY(enter(reader_));
    const bool is_label = reader_.is(Token::Kind::kString);
    if (!is_label && (is_extern || !reader_.is(Token::Kind::kName)))
      return reader_.expected("a function, or the label of one");
    call.target = TRY(take(reader_));
    if (!is_extern || !TRY(reader_.accept(","))) return is_extern ? reader_.expect(")") : Status();
    call.attrs = TRY(parse_call_arguments(
                         reader_, [&]() -> Result<Expr> { return reader_.expected("k=3"); },
                         [&](const std::string&) { return parse_attr_value(reader_); }))
                     .attrs;
    return {};
  }

  /// R.call_packed(f, x, w, k=3), behind the '('.
  Result<DefinitionCall> packed_call(const Token& start) {
    DefinitionCall call{start};
    TRY(read_target(call));
    if (!TRY(reader_.accept(","))) {
      TRY(reader_.expect(")"));
      return call;
    }
    auto [args, attrs] = TRY(parse_call_arguments(
        reader_, [&] { return expression(); },
        [&](const std::string&) { return parse_attr_value(reader_); }));
    call.args = std::move(args);
    for (const auto& [name, value] : attrs.entries()) call.attrs.set(name, value);
    if (!call.attrs.empty() && call.target.kind != Token::Kind::kString)
      return at(call.target,
                bad_model("its definition has the attributes of {}", call.target.text));
    return call;
  }

  /// R.call_tir(f, (x, w), (16, 24), dtype="float32"); the shape may stand first. Behind the '('.
  Result<Expr> stated_call(const Token& start) {
    std::optional<Shape> shape;
    if (reader_.is("(") || reader_.is("[")) {
      shape = TRY(read_shape(reader_, module_.scope));
      TRY(reader_.expect(","));
    }
    DefinitionCall call{start};
    TRY(read_target(call));
    TRY(reader_.expect(","));
    const std::string_view close = TRY(enter_list(reader_, "the arguments in '(' or '['"));
    call.args = TRY(reader_.list(close, [&] { return expression(); }));
    if (!shape || !reader_.is(")")) TRY(reader_.expect(","));
    std::optional<Type> result;
    if (!shape && reader_.is(Token::Kind::kName)) {
      result = TRY(read_script_type(module_));
      TRY(reader_.expect(")"));
    } else {
      TensorType type = TRY(read_array_type_to(")", reader_, module_.scope));
      if (shape && !type.shape.empty()) return at(start, bad_model("two shapes of one result"));
      if (shape) type.shape = *shape;
      result = type;
    }
    return checked(start, TRY(called(call, result)), result);
  }

  /// R.call_packed("label", x): nothing takes what it gives, so it has effects, or updates x.
  Status update() {
    const Token start = reader_.token();
    TRY(enter(reader_));
    const DefinitionCall call = TRY(packed_call(start));
    // What nobody knows gives its only argument anew, or nothing.
    const bool is_only = call.args.size() == 1;
    const Type only = is_only ? call.args[0]->type() : TensorType{{}, DType::kBool};
    const Expr made = TRY(called(call, only));
    const auto* global = as<GlobalVarNode>(as<CallNode>(made)->callee);
    const auto definition = global == nullptr
                                ? module_.module.abstract_functions.end()
                                : module_.module.abstract_functions.find(global->name);
    const ExternalDeclaration* declared = definition == module_.module.abstract_functions.end()
                                              ? nullptr
                                              : declared_external(*definition->second);
    if (declared == nullptr) return at(start, bad_model("nothing takes its result"));
    Ints updates = declared->updates;
    const ExternalFunction* function = find_external(declared->label);
    if (function != nullptr) updates.assign(function->updates.begin(), function->updates.end());
    if (updates.empty() && function == nullptr && is_only && only == made->type()) updates = {0};
    for (size_t i = 0; i < updates.size(); ++i) {
      const size_t input = static_cast<size_t>(updates[i]);
      const Expr updated = input < call.args.size() ? call.args[input] : nullptr;
      const Expr value = made->type().is_tuple()
                             ? TRY(at(start, make_tuple_get_item(made, static_cast<int64_t>(i))))
                             : made;
      bool found = false;
      for (auto& [name, local] : locals_)
        if (local == updated && updated->type() == value->type()) {
          local = value;
          found = true;
        }
      if (!found)
        return at(start, bad_model("{} updates its argument {}, which has no name of its type here",
                                   declared->label, updates[i]));
    }
    if (updates.empty() && !declared->has_effects)
      return at(start, bad_model("nothing takes the result of {}, and it updates no argument",
                                 declared->label));
    return {};
  }

  /// The call, by a label of a definition that it gets where it is first used. `result`: what the
  /// call says that it gives, which a label that is not registered needs.
  Result<Expr> called(const DefinitionCall& call, const std::optional<Type>& result) {
    const auto& [start, target, args, attrs] = call;
    Expr callee;
    if (target.kind == Token::Kind::kString)
      callee = TRY(at(target, labelled(call, result)));
    else if ((callee = find(target.text)) == nullptr)
      return at(target, bad_model("there is no {} in the module", target.text));
    return function_call(start, callee, args);
  }

  Result<Expr> function_call(const Token& start, const Expr& callee, std::vector<Expr> args) {
    calls_.push_back(TRY(at(start, make_function_call(callee, std::move(args), origin(start)))));
    return calls_.back();
  }

  /// What nobody knows may have effects, unless its result is stated.
  Result<Expr> labelled(const DefinitionCall& call, const std::optional<Type>& result) {
    const std::string& label = call.target.text;
    const bool states = word(call.start) == "call_dps_packed",
               known = find_external(label) != nullptr;
    ExternalDeclaration declaration;
    declaration.label = label;
    for (const Expr& arg : call.args) declaration.params.push_back(arg->type());
    if (states || !known) declaration.result = result;
    declaration.has_effects = !states && !known;
    TRY(take_declared(call.attrs, declaration));
    return defined_external(module_, std::move(declaration));
  }

  ScriptModule& module_;
  TextReader& reader_;
  const ScriptSignature& signature_;
  std::map<std::string, Expr> locals_;
  std::map<std::pair<const ExprNode*, int64_t>, Expr> items_;
  std::optional<std::map<std::string, bool>>
      bound_;                // in a dataflow block; whether R.output has it
  std::vector<Expr> calls_;  // in order
  Attrs attrs_;
  Expr result_;
};

}  // namespace

void ScriptModule::define(const std::string& name,
                          std::shared_ptr<const AbstractFunction> function) {
  globals[name] = make_global_var(name, function->type());
  module.abstract_functions[name] = std::move(function);
}

Result<Type> read_script_type(ScriptModule& module) {
  TextReader& reader = module.reader;
  TextReader::Nesting nesting(reader);
  TRY(reader.check_nesting());
  const bool is_tensor = word(reader.token()) == "Tensor";
  if (!is_tensor && word(reader.token()) != "Tuple") return reader.expected("R.Tensor or R.Tuple");
  if (is_tensor) {
    TRY(reader.step());
    return Type(TRY(read_array_type(reader, module.scope)));
  }
  TRY(enter(reader));
  return Type::tuple(TRY(reader.list(")", [&] { return read_script_type(module); })));
}

Result<ScriptSignature> read_script_signature(ScriptModule& module, const Token& start,
                                              const std::string& name) {
  TextReader& reader = module.reader;
  ScriptSignature signature{start, name, {}, {}, {}};
  TRY(reader.expect("("));
  signature.params = TRY(reader.list(")", [&]() -> Result<Expr> {
    const std::string param = TRY(read_name(reader, "a parameter"));
    TRY(reader.expect(":"));
    return make_var(param, TRY(read_script_type(module)));
  }));
  if (TRY(reader.accept("->"))) signature.result = TRY(read_script_type(module));
  signature.body = reader.position();
  return signature;
}

Result<Function> read_script_body(ScriptModule& module, const ScriptSignature& signature) {
  return ScriptGraph(module, signature).read();
}

}  // namespace collage::tensor_program
