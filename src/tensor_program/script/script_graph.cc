#include "tensor_program/script/script_graph.h"

#include <set>

#include "ir/op.h"
#include "ir/text_attrs.h"
#include "ir/text_types.h"
#include "tensor_program/external.h"
#include "tensor_program/module_programs.h"

namespace collage::tensor_program {
namespace {

constexpr int kMostNestedFunctions = 32;

/// The name of an operator or a construct without what it is imported from.
std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {"relax.op.", "relax.", "R.op.", "R.", "op."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

class ScriptGraph {
 public:
  ScriptGraph(ScriptModule& module, int depth)
      : module_(module), reader_(module.reader), depth_(depth) {}

  Result<Function> read(const ScriptSignature& signature) {
    if (depth_ > kMostNestedFunctions)
      return at(signature.start,
                bad_model("functions nested more than {} levels deep", kMostNestedFunctions));
    for (const Expr& param : signature.params)
      if (!locals_.emplace(as<VarNode>(param)->name, param).second)
        return at(signature.start, bad_model("{} stands twice", as<VarNode>(param)->name));
    const Token start = reader_.token();
    TRY(read_block(reader_, signature.start.place.column, [&] { return statement(); }));
    if (result_ == nullptr) return at(start, bad_model("nothing is returned"));
    if (signature.result && !(*signature.result == result_->type()))
      return at(start, bad_model("the function's result is a {}, annotated as {}",
                                 result_->type().to_string(), signature.result->to_string()));
    return make_function(signature.params, result_, attrs_);
  }

 private:
  bool is_relax(std::string_view name) const {
    return reader_.is(Token::Kind::kName) && without_prefix(reader_.token().text) == name;
  }

  Status statement() {
    const Token start = reader_.token();
    if (result_ != nullptr) return at(start, bad_model("nothing follows return"));
    if (start.kind == Token::Kind::kString) {  // documentation
      do TRY(reader_.step());
      while (!end_of_line(reader_).ok());
      return {};
    }
    if (start.is("with")) return dataflow(start);
    if (start.is("@")) return function();
    if (start.is("return")) {
      TRY(reader_.step());
      result_ = TRY(expression());
      if (reader_.is(",")) return reader_.expected("one value: (a, b) is a tuple");
      return {};
    }
    const bool is_call = start.kind == Token::Kind::kName && TRY(followed_by(reader_, "("));
    if (is_call && is_relax("output")) return output();
    if (is_call && (is_relax("func_attr") || is_relax("attrs"))) return attributes();
    if (is_call && is_relax("call_packed")) return update();
    return binding();
  }

  /// with R.dataflow(): what it binds is known in it alone, but for what R.output names.
  Status dataflow(const Token& start) {
    TRY(reader_.step());
    if (!is_relax("dataflow") || bound_.has_value()) return reader_.expected("R.dataflow()");
    TRY(reader_.step());
    TRY(reader_.expect("("));
    TRY(reader_.expect(")"));
    bound_.emplace();
    outputs_.clear();
    TRY(read_block(reader_, start.place.column, [&] { return statement(); }));
    for (const std::string& name : *bound_)
      if (outputs_.count(name) == 0 && result_ == nullptr) locals_.erase(name);
    bound_.reset();
    return {};
  }

  Status output() {
    TRY(reader_.step());
    TRY(reader_.expect("("));
    const std::vector<std::string> names = TRY(reader_.list(")", [&]() -> Result<std::string> {
      if (locals_.count(reader_.token().text) == 0)
        return at(reader_.token(), bad_model("there is no {} here", reader_.token().text));
      return read_name(reader_, "a name");
    }));
    outputs_.insert(names.begin(), names.end());
    return {};
  }

  Status attributes() {
    TRY(reader_.step());
    TRY(reader_.expect("("));
    const Attrs read = TRY(read_attrs(reader_));
    for (const auto& [name, value] : read.entries())
      attrs_.set(name == "primitive" ? "Primitive" : name, value);
    return reader_.expect(")");
  }

  /// @R.function, and a function that this one calls.
  Status function() {
    TRY(reader_.step());
    if (!is_relax("function") && !is_relax("func")) return reader_.expected("R.function");
    TRY(reader_.step());
    const Token start = reader_.token();
    TRY(reader_.expect("def"));
    const std::string name = TRY(read_name(reader_, "the name of a function"));
    const ScriptSignature signature = TRY(read_script_signature(module_, start));
    // Boxes nest by expression inside one function.
    const int outer = reader_.set_nesting(0);
    bind(name, TRY(read_script_body(module_, signature, depth_ + 1)));
    reader_.set_nesting(outer);
    return {};
  }

  void bind(const std::string& name, Expr value) {
    locals_.insert_or_assign(name, std::move(value));
    if (bound_) bound_->insert(name);
  }

  /// name = expression, or name: type = expression
  Status binding() {
    const std::string name = TRY(read_name(reader_, "a statement"));
    std::optional<Type> stated;
    if (TRY(reader_.accept(":"))) stated = TRY(read_script_type(module_));
    TRY(reader_.expect("="));
    const Token here = reader_.token();
    Expr value = TRY(expression(stated ? &*stated : nullptr));
    if (stated && !(*stated == value->type()))
      return at(here, bad_model("the value is a {}, annotated as {}", value->type().to_string(),
                                stated->to_string()));
    bind(name, std::move(value));
    return {};
  }

  /// `stated`: the type that a binding states.
  Result<Expr> expression(const Type* stated = nullptr) {
    TextReader::Nesting nesting(reader_);
    TRY(reader_.check_nesting());
    const Token start = reader_.token();
    Expr value;
    if (start.is("(") || start.is("[")) {
      value = TRY(tuple(start));
    } else if (start.kind == Token::Kind::kName) {
      TRY(reader_.step());
      value = TRY(reader_.accept("(")) ? TRY(call(start, stated)) : TRY(variable(start));
    } else {
      return reader_.expected("an expression");
    }
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

  Result<Expr> tuple(const Token& start) {
    TRY(reader_.step());
    const std::string_view end = start.is("(") ? ")" : "]";
    std::vector<Expr> fields;
    bool comma = start.is("[");
    while (!reader_.is(end)) {
      fields.push_back(TRY(expression()));
      if (!TRY(reader_.accept(","))) break;
      comma = true;
    }
    TRY(reader_.expect(end));
    if (fields.size() == 1 && !comma) return fields[0];
    size_t count = 0;
    for (const Expr& field : fields) TRY(at(start, count_types(field->type(), 1, count)));
    return make_tuple(std::move(fields));
  }

  Result<Expr> variable(const Token& start) {
    const auto local = locals_.find(start.text);
    if (local != locals_.end()) return local->second;
    const Expr global = global_of(start.text);
    if (global != nullptr) return global;
    return at(start, bad_model("there is no {} here", start.text));
  }

  Expr global_of(std::string name) const {
    for (const std::string& prefix : {std::string("cls."), module_.name + "."})
      if (name.starts_with(prefix)) name = name.substr(prefix.size());
    const auto found = module_.globals.find(name);
    return found != module_.globals.end() ? found->second : nullptr;
  }

  std::string origin(const Token& token) const {
    return module_.options.positions ? token.place.to_string() : "";
  }

  /// Behind the '('.
  Result<Expr> call(const Token& start, const Type* stated) {
    const std::string_view name = without_prefix(start.text);
    if (name == "const") return read_script_constant(module_, start);
    if (name == "call_tir" || name == "call_dps_packed") return definition_call(start);
    if (name == "call_packed") {
      std::vector<Expr> args;
      const Token target = TRY(target_of_call());
      while (TRY(reader_.accept(","))) args.push_back(TRY(expression()));
      TRY(reader_.expect(")"));
      return packed_call(start, target, std::move(args),
                         stated != nullptr ? std::optional<Type>(*stated) : std::nullopt);
    }
    const auto local = locals_.find(start.text);
    const Expr callee = local != locals_.end() ? local->second : global_of(start.text);
    if (callee == nullptr) return operator_call(start, std::string(name));
    std::vector<Expr> args = TRY(reader_.list(")", [&] { return expression(); }));
    return at(start, make_function_call(callee, std::move(args), origin(start)));
  }

  Result<Expr> operator_call(const Token& start, std::string name) {
    const bool flat = name == "flatten";
    if (flat) name = "reshape";
    const OpDef* op = find_op(name);
    if (op == nullptr) op = find_op("nn." + name);
    if (op == nullptr) return at(start, unsupported("unknown operator '{}'", start.text));
    auto [args, attrs] = TRY(parse_call_arguments(
        reader_, [&] { return expression(); },
        [&](const std::string& attr) { return attribute(*op, attr); }));
    if (flat && args.size() == 1 && args[0]->type().is_tensor())
      attrs.set("newshape", Ints{num_elements(args[0]->tensor_type().shape)});
    return at(start, make_call(*op, std::move(args), std::move(attrs), origin(start)));
  }

  /// Padding of half the default's length is the same at both ends: padding=(1, 1).
  Result<AttrValue> attribute(const OpDef& op, const std::string& name) {
    AttrValue value = TRY(read_attr_value(reader_));
    auto* list = std::get_if<Ints>(&value);
    for (const AttrSpec& spec : op.attrs) {
      const auto* whole = std::get_if<Ints>(&spec.default_value);
      if (list == nullptr || whole == nullptr || spec.name != name || name != "padding") continue;
      const Ints half = *list;
      if (2 * half.size() == whole->size()) list->insert(list->end(), half.begin(), half.end());
    }
    return value;
  }

  /// "label", R.extern("label") or the name of a definition.
  Result<Token> target_of_call() {
    if (!is_relax("extern") && !is_relax("ExternFunc")) {
      if (!reader_.is(Token::Kind::kName) && !reader_.is(Token::Kind::kString))
        return reader_.expected("a function, or the label of one");
      return take(reader_);
    }
    TRY(reader_.step());
    TRY(reader_.expect("("));
    if (!reader_.is(Token::Kind::kString)) return reader_.expected("a label as a string");
    Token label = TRY(take(reader_));
    TRY(reader_.expect(")"));
    return label;
  }

  /// R.call_tir(f, (x, w), (16, 24), dtype="float32"); the shape may stand first. Behind the '('.
  Result<Expr> definition_call(const Token& start) {
    std::optional<Type> result;
    if (reader_.is("(") || reader_.is("[")) {
      result = TRY(result_type());
      TRY(reader_.expect(","));
    }
    const Token target = TRY(target_of_call());
    TRY(reader_.expect(","));
    const Token open = reader_.token();
    if (!open.is("(") && !open.is("[")) return reader_.expected("the arguments in '(' or '['");
    TRY(reader_.step());
    std::vector<Expr> args =
        TRY(reader_.list(open.is("(") ? ")" : "]", [&] { return expression(); }));
    if (!result) {
      TRY(reader_.expect(","));
      result = TRY(result_type());
    }
    if (TRY(reader_.accept(","))) {
      TRY(reader_.expect("dtype"));
      TRY(reader_.expect("="));
      const DType dtype = TRY(read_dtype(reader_));
      if (result->is_tensor()) result = TensorType{result->tensor().shape, dtype};
    }
    TRY(reader_.expect(")"));
    const bool tir = without_prefix(start.text) == "call_tir";
    Expr made = TRY(packed_call(start, target, std::move(args), result));
    const auto* callee = as<GlobalVarNode>(as<CallNode>(made)->callee);
    const auto found = module_.module.abstract_functions.find(callee->name);
    if (found == module_.module.abstract_functions.end() ||
        (defined_program(*found->second) != nullptr) != tir)
      return at(target, bad_model("{} is no {}", target.text,
                                  tir ? "tensor program" : "external function"));
    if (!(*result == made->type()))
      return at(start, bad_model("{} gives a {}, not a {}", target.text, made->type().to_string(),
                                 result->to_string()));
    return made;
  }

  /// A shape, or types.
  Result<Type> result_type() {
    if (reader_.is(Token::Kind::kName)) return read_script_type(module_);
    return Type(TensorType{TRY(read_shape(reader_, module_.scope)), DType::kFloat32});
  }

  /// Calls a definition by name or by label; one that is not registered gives `result`.
  Result<Expr> packed_call(const Token& start, const Token& target, std::vector<Expr> args,
                           const std::optional<Type>& result) {
    Expr callee;
    if (target.kind == Token::Kind::kString) {
      std::vector<Type> params;
      for (const Expr& arg : args) params.push_back(arg->type());
      const bool dps = without_prefix(start.text) == "call_dps_packed";
      const bool states = dps || find_external(target.text) == nullptr;
      callee = TRY(at(target, labelled(target, params, states ? result : std::nullopt)));
    } else {
      callee = global_of(target.text);
      if (callee == nullptr)
        return at(target, bad_model("there is no {} in the module", target.text));
    }
    return at(start, make_function_call(callee, std::move(args), origin(start)));
  }

  /// The definition of a label, which it gets where it is first used.
  Result<Expr> labelled(const Token& label, const std::vector<Type>& params,
                        const std::optional<Type>& result) {
    std::shared_ptr<const AbstractFunction> function =
        TRY(external_function(label.text, params, result));
    for (const auto& [name, known] : module_.module.abstract_functions)
      if (known->kind_name() == "extern" && known->to_text() == function->to_text())
        return module_.globals.at(name);
    const std::string name = module_.names.fresh(label.text);
    module_.define(name, std::move(function));
    return module_.globals.at(name);
  }

  /// R.call_packed("label", x): nothing takes what it gives, so it updates x.
  Status update() {
    const Token start = TRY(take(reader_));
    TRY(reader_.expect("("));
    const Token target = TRY(target_of_call());
    std::vector<Expr> args;
    std::vector<Token> names;
    while (TRY(reader_.accept(","))) {
      names.push_back(reader_.token());
      args.push_back(TRY(expression()));
    }
    TRY(reader_.expect(")"));
    std::string label = target.text;
    if (target.kind != Token::Kind::kString)
      if (const auto found = module_.module.abstract_functions.find(target.text);
          found != module_.module.abstract_functions.end())
        if (const auto stated = stated_label(*found->second)) label = stated->label;
    const ExternalFunction* function = find_external(label);
    const std::optional<size_t> updated = function != nullptr ? function->updates
                                          : args.size() == 1  ? std::optional<size_t>(0)
                                                              : std::nullopt;
    if (!updated || *updated >= args.size() || locals_.count(names[*updated].text) == 0)
      return at(start,
                bad_model("nothing takes the result of {}, and it updates no argument", label));
    const Type type = args[*updated]->type();
    Expr made = TRY(packed_call(start, target, std::move(args), type));
    if (!(made->type() == type))
      return at(start, bad_model("{} gives a {}, not what it updates, a {}", label,
                                 made->type().to_string(), type.to_string()));
    locals_[names[*updated].text] = std::move(made);
    return {};
  }

  ScriptModule& module_;
  TextReader& reader_;
  const int depth_;
  std::map<std::string, Expr> locals_;
  std::map<std::pair<const ExprNode*, int64_t>, Expr> items_;
  std::optional<std::set<std::string>> bound_;  // in the dataflow block that is read
  std::set<std::string> outputs_;
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
  if (is_of(reader, "R", "Tensor")) {
    TRY(reader.step());
    return Type(TRY(read_array_type(reader, module.scope)));
  }
  if (!is_of(reader, "R", "Tuple")) return reader.expected("R.Tensor or R.Tuple");
  TRY(reader.step());
  TRY(reader.expect("("));
  return Type::tuple(TRY(reader.list(")", [&] { return read_script_type(module); })));
}

Result<ScriptSignature> read_script_signature(ScriptModule& module, const Token& start) {
  TextReader& reader = module.reader;
  ScriptSignature signature{start, {}, {}};
  TRY(reader.expect("("));
  signature.params = TRY(reader.list(")", [&]() -> Result<Expr> {
    const std::string name = TRY(read_name(reader, "a parameter"));
    TRY(reader.expect(":"));
    return make_var(name, TRY(read_script_type(module)));
  }));
  if (TRY(reader.accept("->"))) signature.result = TRY(read_script_type(module));
  return signature;
}

Result<Function> read_script_body(ScriptModule& module, const ScriptSignature& signature,
                                  int depth) {
  return ScriptGraph(module, depth).read(signature);
}

}  // namespace collage::tensor_program
