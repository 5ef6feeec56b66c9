#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tensor_program/checked_term.h"
#include "tensor_program/constant_values.h"
#include "tensor_program/extent.h"
#include "tensor_program/program_text.h"
#include "tensor_program/symbols.h"

namespace collage::tensor_program {
namespace {

// Terms, stages and updates are walked over recursively by what handles programs.
constexpr int kMostNested = 256;
constexpr size_t kMostDeclarations = 1000;

class Parser : TokenReader {
 public:
  Parser(std::string_view text, TextPlace first, const Symbols& symbols)
      : TokenReader(text, first), symbols_(symbols) {
    for (const auto& [name, value] : symbols) program_.symbols.push_back({name, value});
  }

  Result<Program> program() {
    const auto read = [&]() -> Status {
      TRY(take("program"));
      if (accept("(")) TRY(list(")", [&] { return symbol(); }));
      TRY(take("{"));
      TRY(declarations());
      TRY(take("}"));
      return end();
    };
    return checked(read(), [](const Program&, std::string*) { return Status(); });
  }

  Result<Program> declarations_alone(const ProgramCheck& check) {
    const auto read = [&]() -> Status {
      TRY(declarations());
      return end();
    };
    // Symbols of the text around are numbers there.
    return checked(read(), [&](const Program&, std::string* where) -> Status {
      if (!symbols_.empty()) {
        program_ = without_symbols(std::move(program_));
        TRY(verify(program_, where));
      }
      return check(program_, where);
    });
  }

 private:
  /// What was read, if it was and is a program that passes the check.
  Result<Program> checked(Status read, const ProgramCheck& check) {
    if (!read.ok()) return std::move(read).with_context(peek().place.to_string());
    std::string where;
    Status legal = verify(program_, &where);
    if (legal.ok()) legal = check(program_, &where);
    if (legal.ok()) return std::move(program_);
    const auto declared = declared_.find(where);
    const TextPlace place = declared != declared_.end() ? declared->second : at(0).place;
    return std::move(legal).with_context(place.to_string());
  }

  Status end() const { return peek().kind == Token::Kind::kEnd ? Status() : unexpected("the end"); }

  Status declarations() {
    for (size_t count = 0; !is("}") && peek().kind != Token::Kind::kEnd; ++count) {
      if (count == kMostDeclarations)
        return bad_model("more than {} declarations", kMostDeclarations);
      if (accept("param")) {
        TRY(buffer(false));
      } else if (accept("const")) {
        TRY(buffer(true));
      } else if (accept("inout")) {
        TRY(inout());
      } else if (accept("stage")) {
        TRY(stage(false));
      } else if (accept("result")) {
        TRY(stage(true));
      } else if (accept("update")) {
        TRY(update());
      } else if (is("schedule")) {
        TRY(schedule());
      } else {
        return unexpected("a declaration");
      }
    }
    if (!inouts_.empty()) return bad_model("nothing updates {}", inouts_.begin()->first);
    return {};
  }

  /// A name whose place is kept for messages.
  Result<std::string> declared() {
    const TextPlace place = peek().place;
    std::string declared = TRY(name());
    declared_.insert_or_assign(declared, place);
    return declared;
  }
  Result<int64_t> integer() {
    if (peek().kind != Token::Kind::kNumber) return unexpected("a number");
    const Term value = TRY(number_of(peek().text, false));
    if (value.dtype() != DType::kInt32) return unexpected("an integer");
    next();
    return value->integer;
  }

  /// item, item, … up to `end`, which is taken.
  template <typename Item>
  Status list(std::string_view end, Item item) {
    if (accept(end)) return {};
    do TRY(item());
    while (accept(","));
    return take(end);
  }

  Status symbol() {
    Symbol symbol;
    symbol.name = TRY(name());
    TRY(take("="));
    symbol.value = TRY(integer());
    symbols_[symbol.name] = symbol.value;
    program_.symbols.push_back(std::move(symbol));
    return {};
  }

  /// A number; over symbols also an expression, which `size` gets then.
  Result<int64_t> extent(Term& size) {
    if (symbols_.empty()) return integer();
    const Term read = TRY(parse_extent(*this));
    const std::optional<int64_t> value = value_of(read, symbols_);
    if (!value) return bad_model("{} is no extent here", term_to_string(read));
    if (!known_integer(read)) size = read;
    return *value;
  }

  Status type_of(Buffer& buffer) {
    buffer.type.dtype = TRY(parse_dtype(TRY(name())));
    TRY(take("["));
    std::vector<Term> sizes;
    bool symbolic = false;
    TRY(list("]", [&]() -> Status {
      buffer.type.shape.push_back(TRY(extent(sizes.emplace_back())));
      symbolic = symbolic || sizes.back().defined();
      return {};
    }));
    if (symbolic) buffer.sizes = std::move(sizes);
    return {};
  }

  Result<std::vector<Axis>> axes(std::string_view end) {
    std::vector<Axis> axes;
    TRY(list(end, [&]() -> Status {
      Axis axis;
      axis.name = TRY(name());
      TRY(take(":"));
      axis.extent = TRY(extent(axis.size));
      axes.push_back(std::move(axis));
      return {};
    }));
    return axes;
  }

  Result<std::string> scope() {
    if (!accept("in")) return std::string();
    if (peek().kind != Token::Kind::kString) return unexpected("the name of a memory scope");
    std::string name = next().text;
    if (name.empty() || name.find_first_of("\"/,") != std::string::npos)
      return bad_model("'{}' is no memory scope", name);
    return name;
  }

  Status buffer(bool is_constant) {
    Buffer buffer;
    buffer.is_constant = is_constant;
    buffer.name = TRY(declared());
    TRY(take(":"));
    TRY(type_of(buffer));
    if (!is_constant) buffer.scope = TRY(scope());
    if (is_constant && accept("=")) {
      TRY(take("{"));
      std::vector<Term> values;
      TRY(list("}", [&]() -> Status {
        values.push_back(TRY(number()));
        return {};
      }));
      buffer.value = TRY(tensor_of(buffer.name, buffer.type, values));
    }
    program_.buffers.push_back(std::move(buffer));
    return take(";");
  }

  /// As a parameter; the stage stands where its updates do.
  Status inout() {
    Stage stage;
    stage.is_result = true;
    stage.name = TRY(declared());
    TRY(take("["));
    stage.axes = TRY(axes("]"));
    stage.scope = TRY(scope());
    TRY(take(":"));
    stage.dtype = TRY(parse_dtype(TRY(name())));
    const std::string param = stage.name + std::string(kInoutSuffix);
    stage.value = load(param, stage.dtype, stage.indices());
    program_.buffers.push_back({param, {stage.shape(), stage.dtype}});
    program_.buffers.back().scope = stage.scope;
    for (const Axis& axis : stage.axes)
      if (!symbols_.empty()) program_.buffers.back().sizes.push_back(axis.size);
    inouts_.insert_or_assign(stage.name, std::move(stage));
    return take(";");
  }

  static bool is_number(const Token& token) {
    return token.kind == Token::Kind::kNumber || token.is("inff") || token.is("nanf") ||
           token.is("infd") || token.is("nand");
  }
  Result<Term> number() {
    const bool negative = accept("-");
    if (!is_number(peek())) return unexpected("a number");
    return number_of(next().text, negative);
  }

  /// Whether sum(…) starts here, and no term: max(k:4) x, not max(x, y).
  bool at_combine() const {
    if (peek().kind != Token::Kind::kName || !combine_of(peek().text)) return false;
    return peek(1).is("(") && (peek(2).is(")") || peek(3).is(":"));
  }

  Status combine_into(Update& update) {
    update.combine = *combine_of(TRY(name()));
    TRY(take("("));
    update.over = TRY(axes(")"));
    update.value = TRY(term(0));
    return {};
  }

  Status stage(bool is_result) {
    Stage stage;
    stage.is_result = is_result;
    stage.name = TRY(declared());
    TRY(take("["));
    stage.axes = TRY(axes("]"));
    if (is_result) stage.scope = TRY(scope());
    if (accept(":")) {
      stage.dtype = TRY(parse_dtype(TRY(name())));
    } else {
      TRY(take("="));
      if (accept("extern")) {
        if (peek().kind != Token::Kind::kString) return unexpected("the label of a function");
        stage.external.label = next().text;
        TRY(take("("));
        TRY(list(")", [&]() -> Status {
          stage.external.inputs.push_back(TRY(name()));
          return {};
        }));
        TRY(take(":"));
        stage.dtype = TRY(parse_dtype(TRY(name())));
      } else if (at_combine()) {
        Update update;
        update.at = stage.indices();
        TRY(combine_into(update));
        stage.dtype = update.value.dtype();
        stage.updates.push_back(std::move(update));
      } else {
        stage.value = TRY(term(0));
        stage.dtype = stage.value.dtype();
      }
    }
    program_.stages.push_back(std::move(stage));
    return take(";");
  }

  Status update() {
    const std::string stage = TRY(name());
    if (const auto begun = inouts_.find(stage); begun != inouts_.end()) {
      program_.stages.push_back(std::move(begun->second));
      inouts_.erase(begun);
    }
    if (program_.stages.empty() || program_.stages.back().name != stage)
      return bad_model("an update of {}, which is not the stage above", stage);
    Update update;
    TRY(take("["));
    TRY(list("]", [&]() -> Status {
      update.at.push_back(TRY(term(0)));
      return {};
    }));
    TRY(take("="));
    if (!at_combine()) return unexpected("set(…), sum(…), product(…), max(…) or min(…)");
    TRY(combine_into(update));
    program_.stages.back().updates.push_back(std::move(update));
    return take(";");
  }

  Status schedule() {
    TRY(declared());
    TRY(take("{"));
    while (!accept("}")) {
      Primitive step;
      step.stage = TRY(name());
      TRY(take("."));
      if (accept("update")) {
        TRY(take("("));
        step.update = static_cast<int>(std::min<int64_t>(TRY(integer()), INT32_MAX));
        TRY(take(")"));
        TRY(take("."));
      }
      const std::string what = TRY(name());
      bool known = false;
      for (const PrimitiveSpelling& spelling : primitive_spellings()) {
        if (spelling.text != what) continue;
        step.kind = spelling.kind;
        known = true;
      }
      if (!known) return bad_model("no schedule primitive {}", what);
      TRY(take("("));
      TRY(list(")", [&]() -> Status {
        if (peek().kind == Token::Kind::kNumber) {
          step.number = TRY(integer());
        } else if (accept("guarded")) {
          step.guarded = true;
        } else if (accept("masked")) {
          step.masked = true;
        } else if (!symbols_.empty() && accept("by")) {
          step.size = TRY(term(0));
        } else {
          step.names.push_back(TRY(name()));
        }
        return {};
      }));
      program_.schedule.push_back(std::move(step));
      TRY(take(";"));
    }
    return {};
  }

  /// Operators of at least that precedence.
  Result<Term> term(int least) {
    Term left = TRY(operand());
    for (;;) {
      const TermSpelling* found = nullptr;
      for (const TermSpelling& spelling : term_spellings())
        if (spelling.arity == 2 && spelling.precedence > 0 && is(spelling.text)) found = &spelling;
      if (found == nullptr || found->precedence < least) return left;
      next();
      const Term right = TRY(term(found->precedence + 1));
      left = TRY(checked_term(found->op, {left, right}));
      if (left->depth >= kMostNested) return too_deep();
    }
  }

  Result<std::vector<Term>> terms(std::string_view end) {
    std::vector<Term> found;
    TRY(list(end, [&]() -> Status {
      found.push_back(TRY(term(0)));
      return {};
    }));
    return found;
  }

  Result<Term> operand() {
    if (nested_ == kMostNested) return too_deep();
    ++nested_;
    Result<Term> read = operand_here();
    --nested_;
    if (read.ok() && (*read)->depth >= kMostNested) return too_deep();
    return read;
  }

  static Status too_deep() {
    return bad_model("terms nested more than {} levels deep", kMostNested);
  }

  Result<Term> operand_here() {
    if (accept("(")) {
      Term inner = TRY(term(0));
      TRY(take(")"));
      return inner;
    }
    if (accept("!")) return checked_term(TermOp::kNot, {TRY(operand())});
    if (is_number(peek())) return number();
    if (is("-")) {
      if (is_number(peek(1))) return number();
      next();
      return checked_term(TermOp::kNegate, {TRY(operand())});
    }
    const size_t here = position();
    const std::string word = TRY(name());
    if (word == "true" || word == "false")
      return integer_constant(word == "true" ? 1 : 0, DType::kBool);
    if (accept("[")) {
      const bool known =
          program_.find_buffer(word) != nullptr || program_.find_stage(word) != nullptr;
      if (!known) {
        seek(here);  // where the message says it is
        return bad_model("there is no {} above", word);
      }
      return load(word, program_.type_of(word).dtype, TRY(terms("]")));
    }
    if (!accept("(")) return var(word);
    std::vector<Term> args = TRY(terms(")"));
    for (const TermSpelling& spelling : term_spellings())
      if (spelling.precedence == 0 && spelling.text == word)
        return checked_term(spelling.op, std::move(args));
    if (args.size() != 1) return bad_model("{} of {} arguments", word, args.size());
    return cast(TRY(parse_dtype(word)), args[0]);
  }

  int nested_ = 0;
  Program program_;
  Symbols symbols_;
  std::map<std::string, Stage> inouts_;                  // those that nothing updated yet
  std::unordered_map<std::string, TextPlace> declared_;  // and of the word schedule
};

}  // namespace

Result<Program> parse_program(std::string_view text) { return Parser(text, {}, {}).program(); }

Result<Program> parse_declarations(std::string_view text, TextPlace first,
                                   const ProgramCheck& check, const Symbols& symbols) {
  return Parser(text, first, symbols).declarations_alone(check);
}

}  // namespace collage::tensor_program
