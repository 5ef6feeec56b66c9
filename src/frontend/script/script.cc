#include "frontend/script/script.h"

#include <algorithm>

#include "base/files.h"
#include "base/printable.h"
#include "frontend/script/script_calls.h"
#include "frontend/script/script_graph.h"
#include "frontend/script/script_program.h"
#include "ir/text_attrs.h"
#include "tensor_program/module_programs.h"

namespace collage::tensor_program {
namespace {

/// The top level of the text: numbers, and a class of definitions.
class ModuleScript {
 public:
  ModuleScript(TextReader& reader, const ParseOptions& options)
      : reader_(reader), module_{reader, options} {}

  /// First the headers (a function may call one defined later), then the bodies.
  Result<Module> read() {
    TRY(reader_.step());
    while (!reader_.is(Token::Kind::kEnd)) {
      TRY(statement());
      TRY(end_of_line(reader_));
    }
    if (module_.name.empty()) return reader_.expected("a class below a decorator @ir_module");
    for (const auto& [name, def, body] : calls_) {
      TRY(reader_.seek(body));
      const Function read = TRY(read_calls(module_, def));
      module_.module.functions[name] = read;
      module_.globals[name] = make_global_var(name, read->type());
    }
    for (const ScriptSignature& function : functions_) {
      TRY(reader_.seek(function.body));
      const Function read = TRY(read_script_body(module_, function));
      module_.module.functions[function.name] = read;
      if (!function.result)
        module_.globals[function.name] = make_global_var(function.name, read->type());
    }
    TRY(order_effects(module_.module, module_.calls));
    return std::move(module_.module);
  }

 private:
  Status statement() {
    const Token start = reader_.token();
    if (start.kind == Token::Kind::kString || start.is("import") || start.is("from"))
      return skip_line(reader_);
    if (!start.is("@")) return numbers();
    TRY(reader_.step());
    if (!reader_.is(Token::Kind::kName) || !reader_.token().text.ends_with("ir_module"))
      return reader_.expected("ir_module");
    TRY(reader_.step());
    TRY(reader_.expect("class"));
    if (!module_.name.empty()) return at(start, bad_model("a second module"));
    module_.name = TRY(read_name(reader_, "the name of a class"));
    return read_block(reader_, start.place.column, [&] { return member(); });
  }

  /// n, m = 16, 24
  Status numbers() {
    const std::vector<std::string> names = TRY(reader_.list(
        "=", [&] { return read_name(reader_, "the name of a number, or @ir_module"); }));
    for (size_t i = 0; i < names.size(); ++i) {
      if (i > 0) TRY(reader_.expect(","));
      const Token place = reader_.token();
      const int64_t value = TRY(read_extent(reader_, module_.scope));
      if (value < INT32_MIN || value > INT32_MAX)
        return at(place, bad_model("{} does not fit 32 bits", value));
      module_.scope.numbers[names[i]] = value;
    }
    return {};
  }

  Status member() {
    const Token start = reader_.token();
    if (start.kind == Token::Kind::kString) return skip_line(reader_);
    if (start.is("I.module_attrs") || start.is("module_attrs")) return module_attrs();
    if (!TRY(reader_.accept("@"))) return external();
    const Token kind = reader_.token();
    const bool is_program = word(kind) == "prim_func" || kind.is("T.func") || kind.is("func");
    if (!is_program && word(kind) != "function" && word(kind) != "func")
      return reader_.expected("T.prim_func or R.function");
    TRY(reader_.step());
    if (reader_.is("(")) TRY(skip_line(reader_));  // (private=True)
    const Token def = reader_.token();
    TRY(reader_.expect("def"));
    const std::string name = TRY(defined_name());
    const bool only_headers = reader_.symbols() != nullptr && reader_.symbols()->only_headers();
    if (is_program && only_headers) return skip_block(reader_, def.place.column);
    if (is_program && TRY(consists_of_calls(reader_, def))) {
      calls_.push_back({name, def, reader_.position()});
      return skip_block(reader_, def.place.column);
    }
    if (is_program) {
      module_.define(name, program_function(TRY(read_program(reader_, def, module_.scope))));
      return {};
    }
    const ScriptSignature& function =
        functions_.emplace_back(TRY(read_script_signature(module_, def, name)));
    if (only_headers) TRY(reader_.symbols()->header(name, function.params, function.result));
    std::vector<Type> params;
    for (const Expr& param : function.params) params.push_back(param->type());
    if (function.result)
      module_.globals[name] = make_global_var(name, Type::function(params, *function.result));
    return skip_block(reader_, def.place.column);
  }

  /// I.module_attrs({"external_mods": {"symbol": ("target", "variant", R.const(…)), …}})
  Status module_attrs() {
    if (reader_.symbols() != nullptr && reader_.symbols()->only_headers())
      return skip_line(reader_);
    TRY(enter(reader_));
    TRY(reader_.expect("{"));
    const Token attr = reader_.token();
    if (TRY(read_string(reader_, "the name of an attribute")) != "external_mods")
      return at(attr, unsupported("a module's attribute '{}'", printable(attr.text)));
    TRY(reader_.expect(":"));
    TRY(reader_.expect("{"));
    TRY(reader_.list("}", [&] { return external_mod(); }));
    TRY(reader_.expect("}"));
    return reader_.expect(")");
  }

  Result<std::string> external_mod() {
    const Token start = reader_.token();
    const std::string symbol = TRY(read_string(reader_, "the symbol of an external module"));
    ExternalMod mod;
    TRY(reader_.expect(":"));
    TRY(reader_.expect("("));
    mod.target = TRY(read_string(reader_, "a target as a string"));
    TRY(reader_.expect(","));
    mod.variant = TRY(read_string(reader_, "a variant as a string"));
    TRY(reader_.expect(","));
    const Token code = reader_.token();
    if (word(code) != "const") return reader_.expected("R.const");
    TRY(enter(reader_));
    mod.code = TRY(read_script_constant(module_, code));
    TRY(at(code, check_external_mod(mod)));
    TRY(reader_.expect(")"));
    if (!module_.module.external_mods.emplace(symbol, std::move(mod)).second)
      return at(start, bad_model("a second external module '{}'", printable(symbol)));
    return symbol;
  }

  /// product = R.extern("label", (R.Tensor(…), …)[, R.Tensor(…)][, k=3])
  Status external() {
    const std::string name = TRY(defined_name());
    TRY(reader_.expect("="));
    if (word(reader_.token()) != "extern") return reader_.expected("R.extern");
    if (reader_.symbols() != nullptr && reader_.symbols()->only_headers())
      return skip_line(reader_);
    TRY(enter(reader_));
    const Token label = reader_.token();
    TRY(read_string(reader_, "the label of a function as a string"));
    TRY(reader_.expect(","));
    TRY(reader_.expect("("));
    ExternalDeclaration declaration;
    declaration.label = label.text;
    declaration.params = TRY(reader_.list(")", [&] { return read_script_type(module_); }));
    if (TRY(reader_.accept(","))) {
      auto [result, attrs] = TRY(parse_call_arguments<Type>(
          reader_, [&] { return read_script_type(module_); },
          [&](const std::string&) { return parse_attr_value(reader_); }));
      if (result.size() > 1) return at(label, bad_model("several results are an R.Tuple"));
      if (!result.empty()) declaration.result = result[0];
      TRY(at(label, take_declared(std::move(attrs), declaration)));
    } else {
      TRY(reader_.expect(")"));
    }
    module_.define(name, TRY(at(label, external_function(std::move(declaration)))));
    return {};
  }

  Result<std::string> defined_name() {
    const Token place = reader_.token();
    const std::string name = TRY(read_name(reader_, "the name of a definition"));
    if (module_.names.fresh(name) != name) return at(place, bad_model("{} is defined twice", name));
    return name;
  }

  TextReader& reader_;
  ScriptModule module_;
  std::vector<ScriptSignature> functions_;
  struct Calls {
    std::string name;
    Token def;
    Lexer::Position body;  // of its '('
  };
  std::vector<Calls> calls_;
};

}  // namespace

bool is_script(std::string_view text) {
  for (size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1) {
    std::string_view line = text.substr(at, text.find('\n', at) - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with("@")) continue;
    line = line.substr(0, line.find_first_of(" \t\r#"));
    return line.ends_with("ir_module");
  }
  return false;
}

Result<Module> parse_module_text(std::string_view text, ParseOptions options) {
  if (is_script(text)) return parse_script(text, options);
  options.abstract_function = abstract_function;
  return parse_module(text, options);
}

Result<Module> load_module_text(const std::filesystem::path& path, ParseOptions options) {
  const std::string text = TRY(read_file(path));
  options.folder = path.parent_path();
  return parse_module_text(text, std::move(options)).with_context(path.string());
}

bool is_module_text(const std::filesystem::path& path) {
  return path.extension() == ".relay" || path.extension() == ".script" || path.extension() == ".py";
}

Result<Module> parse_script(std::string_view text, const ParseOptions& options) {
  TextReader reader = script_reader(text);
  reader.set_symbols(options.symbols);
  return ModuleScript(reader, options).read();
}

}  // namespace collage::tensor_program
