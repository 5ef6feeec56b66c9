#include "ir/text_parser.h"

#include "base/files.h"
#include "base/printable.h"
#include "ir/text_functions.h"
#include "ir/text_types.h"

namespace collage {

namespace {

using Kind = Token::Kind;

// The top level of the text: the version, headers, abstract functions and the metadata section.
class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : options_(options), reader_(text), metadata_(options) {
    reader_.set_symbols(options.symbols);
  }

  // First the headers (a function may call one defined later) and the metadata, then the bodies.
  Result<Module> module() {
    TRY(reader_.step());
    if (reader_.is("#[")) TRY(version());
    while (!reader_.is(Kind::kEnd)) {
      if (reader_.is("def") || reader_.is("fn")) {
        TRY(header());
      } else if (reader_.is("program") || reader_.is("extern")) {
        TRY(abstract_function());
      } else if (reader_.is("external_mods")) {
        TRY(external_mod());
      } else if (reader_.is("#[")) {
        TRY(reader_.step());
        if (!reader_.is("metadata")) return reader_.expected("'metadata'");
        TRY(reader_.step());
        if (!reader_.is("]")) return reader_.expected("']'");
        Token here = reader_.token();
        Status status = metadata_.read(reader_.rest());
        if (!status) return at(here, std::move(status));
        break;
      } else {
        return reader_.expected(
            "'def', 'fn', 'program', 'extern', 'external_mods' or '#[metadata]'");
      }
    }
    if (only_headers()) return std::move(module_);
    for (const auto& [symbol, begin] : mods_) {
      TRY(reader_.seek(begin));
      module_.external_mods[symbol] = TRY(external_mod_value());
    }
    for (Pending& pending : pending_) {
      TRY(reader_.seek(pending.body));
      module_.functions[pending.name] = TRY(functions_.body(pending.signature));
    }
    TRY(order_effects(module_, functions_.calls()));
    return std::move(module_);
  }

 private:
  bool only_headers() const {
    return options_.symbols != nullptr && options_.symbols->only_headers();
  }

  struct Pending {
    std::string name;
    Signature signature;
    Lexer::Position body;  // of its '{'
  };

  Status version() {
    TRY(reader_.step());
    if (!reader_.is("version")) return reader_.expected("'version'");
    TRY(reader_.step());
    TRY(reader_.expect("="));
    if (!reader_.is(Kind::kString)) return reader_.expected("a string");
    if (reader_.token().text != "0.0.5")
      return at(reader_.token(),
                unsupported("text of version {}; this reads 0.0.5", reader_.token().text));
    TRY(reader_.step());
    return reader_.expect("]");
  }

  Status header() {
    bool named = reader_.is("def");
    Token start = reader_.token();
    TRY(reader_.step());
    std::string name = "main";
    if (named) {
      if (!reader_.is(Kind::kGlobal)) return reader_.expected("a global name such as @main");
      name = reader_.token().text;
      TRY(reader_.step());
    }
    Pending pending{name, TRY(functions_.signature()), {}};
    if (only_headers())
      TRY(options_.symbols->header(name, pending.signature.params, pending.signature.result));
    if (!reader_.is("{")) return reader_.expected("'{'");
    pending.body = reader_.position();
    if (!globals_
             .emplace(name, pending.signature.result
                                ? Type::function(param_types(pending.signature),
                                                 *pending.signature.result)
                                : std::optional<Type>())
             .second)
      return at(start, bad_model("@{} is defined twice", name));
    pending_.push_back(std::move(pending));
    Token open = reader_.token();
    for (int depth = 0;;) {
      if (reader_.is("{")) ++depth;
      if (reader_.is("}") && --depth == 0) break;
      if (reader_.is(Kind::kEnd)) return at(open, bad_model("this '{{' is not closed"));
      TRY(reader_.step());
    }
    return reader_.step();
  }

  static std::vector<Type> param_types(const Signature& signature) {
    std::vector<Type> types;
    for (const Expr& param : signature.params) types.push_back(param->type());
    return types;
  }

  Status abstract_function() {
    Token start = reader_.token();
    TRY(reader_.step());
    if (!reader_.is(Kind::kGlobal)) return reader_.expected("a global name such as @scale");
    std::string name = reader_.token().text;
    TRY(reader_.step());
    if (!options_.abstract_function)
      return at(start, unsupported("@{}: {} functions cannot be read here", name, start.text));
    std::shared_ptr<const AbstractFunction> function =
        TRY(options_.abstract_function(start.text, reader_));
    if (function == nullptr) return {};
    if (!globals_.emplace(name, function->type()).second)
      return at(start, bad_model("@{} is defined twice", name));
    module_.abstract_functions[name] = std::move(function);
    return {};
  }

  // external_mods["symbol"] = (target, variant, code);
  Status external_mod() {
    TRY(reader_.step());
    TRY(reader_.expect("["));
    const Token start = reader_.token();
    const std::string symbol = TRY(string());
    TRY(reader_.expect("]"));
    TRY(reader_.expect("="));
    if (!mods_.emplace(symbol, reader_.position()).second)
      return at(start, bad_model("a second external module '{}'", printable(symbol)));
    while (!reader_.is(";") && !reader_.is(Kind::kEnd)) TRY(reader_.step());
    return reader_.expect(";");
  }

  Result<ExternalMod> external_mod_value() {
    ExternalMod mod;
    TRY(reader_.expect("("));
    mod.target = TRY(string());
    TRY(reader_.expect(","));
    mod.variant = TRY(string());
    TRY(reader_.expect(","));
    const Token start = reader_.token();
    if (!start.is("meta")) return reader_.expected("meta[relay.Constant][…]");
    mod.code = TRY(functions_.meta());
    TRY(at(start, check_external_mod(mod)));
    TRY(reader_.expect(")"));
    TRY(reader_.expect(";"));
    return mod;
  }

  Result<std::string> string() {
    if (!reader_.is(Kind::kString)) return reader_.expected("a string");
    std::string text = reader_.token().text;
    TRY(reader_.step());
    return text;
  }

  const ParseOptions& options_;
  TextReader reader_;
  Metadata metadata_;
  GlobalTypes globals_;
  FunctionParser functions_{reader_, metadata_, globals_, options_.positions};
  Module module_;
  std::vector<Pending> pending_;
  std::map<std::string, Lexer::Position> mods_;  // of their '('
};

}  // namespace

Result<Module> parse_module(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).module();
}

Result<Function> parse_function(std::string_view text, const ParseOptions& options) {
  Module module = TRY(parse_module(text, options));
  auto it = module.functions.find("main");
  if (it == module.functions.end()) return bad_model("the text has no function @main");
  return it->second;
}

Result<Module> load_module(const std::filesystem::path& path, ParseOptions options) {
  std::string text = TRY(read_file(path));
  options.folder = path.parent_path();
  return parse_module(text, options).with_context(path.string());
}

}  // namespace collage
