#include "tensor_program/symbolic_program.h"

#include <algorithm>

#include "base/printable.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {

class SymbolicParser : TokenReader {
 public:
  explicit SymbolicParser(std::string_view text) : TokenReader(text) {}

  Result<SymbolicProgram> run() {
    Result<SymbolicProgram> program = body();
    if (!program.ok()) return std::move(program).with_context(peek().place.to_string());
    return program;
  }

 private:
  using Kind = Token::Kind;

  Result<SymbolicProgram> body() {
    TRY(take("program"));
    TRY(take("("));
    if (!is(")")) {
      do TRY(symbol());
      while (accept(","));
    }
    TRY(take(")"));
    if (!is("{")) return unexpected("'{'");
    program_.pieces_.push_back({{Kind::kName, "program", {}, peek().place}, {}});
    while (peek().kind != Kind::kEnd) TRY(piece());
    TRY(program_.check_extents_follow());
    return std::move(program_);
  }

  /// An extent, or an attribute: name ":" type ["=" number].
  Status symbol() {
    const std::string name = TRY(own_name());
    symbols_.push_back(name);
    if (!accept(":")) {
      program_.extents_.push_back(name);
      return {};
    }
    AttrSpec attribute;
    attribute.name = name;
    const bool whole = is("int64");
    if (!whole && !is("float32")) return unexpected("int64 or float32");
    next();
    if (whole) {
      attribute.default_value = int64_t{0};
    } else {
      attribute.default_value = 0.0;
    }
    attribute.required = !accept("=");
    if (!attribute.required) {
      const bool negative = accept("-");
      const Term value = TRY(number_of(next().text, negative));
      if (whole && is_float(value.dtype())) return bad_model("{} is of type int64", name);
      if (whole) {
        attribute.default_value = value->integer;
      } else {
        attribute.default_value =
            is_float(value.dtype()) ? value->real : static_cast<double>(value->integer);
      }
    }
    program_.attributes_.push_back(std::move(attribute));
    return {};
  }

  Status piece() {
    if (is("param") || is("const")) return buffer();
    if (is("inout"))
      return bad_model("an operator updates nothing in place: a param and a result, not an inout");
    if (is("stage") || is("result")) {
      keep();
      return kept_name();
    }
    const Token* before = position() > 0 ? &at(position() - 1) : nullptr;
    const bool in_list =
        before != nullptr && (before->is("[") || before->is("(") || before->is(","));
    const bool axis = in_list && peek().kind == Kind::kName && peek(1).is(":");
    if (!axis) {
      keep();
      return {};
    }
    TRY(kept_name());
    keep();
    return keep_extent().status();
  }

  Status buffer() {
    const bool is_param = is("param");
    keep();
    SymbolicProgram::Param param;
    param.name = peek().text;
    TRY(kept_name());
    TRY(keep(":"));
    param.dtype = TRY(parse_dtype(peek().text));
    keep();
    TRY(keep("["));
    while (!is("]")) {
      param.shape.push_back(TRY(keep_extent()));
      if (!is("]")) TRY(keep(","));
    }
    if (is_param) program_.params_.push_back(std::move(param));
    return {};
  }

  Result<Term> keep_extent() {
    const Token first = peek();
    Term extent = TRY(parse_extent(*this));
    for (const std::string& name : unknown_symbols(extent, {}))
      if (!is_extent(name))
        return bad_model("'{}' in an extent is neither an extent nor of type int64",
                         printable(name));
    program_.pieces_.push_back({first, extent});
    return extent;
  }

  bool is_extent(const std::string& name) const {
    const auto& extents = program_.extents_;
    if (std::find(extents.begin(), extents.end(), name) != extents.end()) return true;
    return std::any_of(
        program_.attributes_.begin(), program_.attributes_.end(), [&](const AttrSpec& attribute) {
          return attribute.name == name && std::holds_alternative<int64_t>(attribute.default_value);
        });
  }

  void keep() { program_.pieces_.push_back({next(), {}}); }
  Status keep(std::string_view mark) {
    if (!is(mark)) return unexpected("'" + std::string(mark) + "'");
    keep();
    return {};
  }
  Status kept_name() {
    const Token token = peek();
    TRY(own_name());
    program_.pieces_.push_back({token, {}});
    return {};
  }
  /// A name that is no symbol's.
  Result<std::string> own_name() {
    const std::string name = TRY(this->name());
    if (std::find(symbols_.begin(), symbols_.end(), name) != symbols_.end())
      return bad_model("'{}' is a symbol already", printable(name));
    return name;
  }

  std::vector<std::string> symbols_;
  SymbolicProgram program_;
};

namespace {

std::string typed(DType dtype, const std::vector<Term>& shape) {
  std::string text;
  for (const Term& extent : shape) text += (text.empty() ? "" : ", ") + term_to_string(extent);
  return fmt::format("{}[{}]", dtype_name(dtype), text);
}

std::string listed(const Symbols& symbols) {
  std::string text;
  for (const auto& [name, value] : symbols)
    text += fmt::format("{}{} = {}", text.empty() ? " with " : ", ", name, value);
  return text;
}

}  // namespace

Result<SymbolicProgram> SymbolicProgram::parse(std::string_view text) {
  return SymbolicParser(text).run();
}

Symbols SymbolicProgram::with_attributes(const Symbols& extents, const Attrs& attrs) const {
  Symbols symbols = extents;
  for (const AttrSpec& attribute : attributes_)
    if (std::holds_alternative<int64_t>(attribute.default_value))
      symbols[attribute.name] = attrs.integer(attribute.name);
  return symbols;
}

/// As binding goes, whatever the shapes.
Status SymbolicProgram::check_extents_follow() const {
  Symbols known;
  for (const AttrSpec& attribute : attributes_) known[attribute.name] = 1;
  for (bool more = true; more;) {
    more = false;
    for (const Param& param : params_) {
      for (const Term& extent : param.shape) {
        const std::vector<std::string> unknown = unknown_symbols(extent, known);
        if (unknown.size() != 1) continue;
        Symbols one = known;
        one[unknown[0]] = 1;
        const auto value = value_of(extent, one);
        if (!value || !solve(extent, unknown[0], known, *value)) continue;
        known = std::move(one);
        more = true;
      }
    }
  }
  for (const std::string& extent : extents_)
    if (known.count(extent) == 0)
      return bad_model(
          "no parameter's shape decides {}: some dimension has to be {}, or linear in it", extent,
          extent);
  return {};
}

Result<Symbols> SymbolicProgram::bind(std::span<const Type> args, const Attrs& attrs) const {
  if (args.size() != params_.size())
    return bad_model("takes {} tensors, not {}", params_.size(), args.size());
  for (size_t i = 0; i < args.size(); ++i)
    if (!args[i].is_tensor() || args[i].tensor().dtype != params_[i].dtype ||
        args[i].tensor().shape.size() != params_[i].shape.size())
      return bad_model("{} is {}, not {}", params_[i].name, args[i].to_string(),
                       typed(params_[i].dtype, params_[i].shape));
  Symbols known = with_attributes({}, attrs);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < args.size(); ++i) {
      for (size_t d = 0; d < params_[i].shape.size(); ++d) {
        const std::vector<std::string> unknown = unknown_symbols(params_[i].shape[d], known);
        if (unknown.size() != 1) continue;
        const auto value = solve(params_[i].shape[d], unknown[0], known, args[i].tensor().shape[d]);
        if (!value) continue;
        known[unknown[0]] = *value;
        more = true;
      }
    }
  }
  for (size_t i = 0; i < args.size(); ++i)
    for (size_t d = 0; d < params_[i].shape.size(); ++d)
      if (value_of(params_[i].shape[d], known) != args[i].tensor().shape[d])
        return bad_model("dimension {} of {} is {}, not {}{}", d, params_[i].name,
                         args[i].tensor().shape[d], term_to_string(params_[i].shape[d]),
                         listed(known));
  Symbols extents;
  for (const std::string& extent : extents_) {
    if (known.count(extent) == 0) return bad_model("these shapes do not decide {}", extent);
    extents[extent] = known.at(extent);
  }
  return extents;
}

Result<std::vector<TensorType>> SymbolicProgram::types_of_params(const Symbols& extents,
                                                                 const Attrs& attrs) const {
  const Symbols symbols = with_attributes(extents, attrs);
  std::vector<TensorType> types;
  for (const Param& param : params_) {
    TensorType type{{}, param.dtype};
    for (const Term& extent : param.shape) {
      const auto value = value_of(extent, symbols);
      if (!value || *value < 0)
        return bad_model("{} has no dimension {}{}", param.name, term_to_string(extent),
                         listed(symbols));
      type.shape.push_back(*value);
    }
    types.push_back(std::move(type));
  }
  return types;
}

Result<std::string> SymbolicProgram::text_for(const Symbols& extents, const Attrs& attrs) const {
  const Symbols symbols = with_attributes(extents, attrs);
  std::map<std::string, std::string> numbers;
  const auto add = [&](const std::string& name, const Term& value) {
    const std::string text = term_to_string(value);
    numbers[name] = text.starts_with("-") ? "(" + text + ")" : text;
  };
  for (const auto& [name, value] : symbols) {
    if (value < INT32_MIN || value > INT32_MAX) return bad_model("{} = {}", name, value);
    add(name, integer_constant(value, DType::kInt32));
  }
  for (const AttrSpec& attribute : attributes_)
    if (std::holds_alternative<double>(attribute.default_value))
      add(attribute.name, constant(attrs.real(attribute.name), DType::kFloat32));
  std::string text;
  size_t line = pieces_[0].token.place.line;
  for (const Piece& piece : pieces_) {
    if (!text.empty()) text += piece.token.place.line > line ? '\n' : ' ';
    line = piece.token.place.line;
    if (piece.extent.defined()) {
      const auto value = value_of(piece.extent, symbols);
      if (!value || *value < 0)
        return bad_model("line {}: no extent {}{}", line, term_to_string(piece.extent),
                         listed(symbols));
      text += std::to_string(*value);
      continue;
    }
    const auto number =
        piece.token.kind == Token::Kind::kName ? numbers.find(piece.token.text) : numbers.end();
    if (number != numbers.end()) {
      text += number->second;
    } else if (piece.token.kind == Token::Kind::kString) {
      text += '"' + piece.token.text + '"';
    } else {
      text += piece.token.text;
    }
  }
  return text;
}

}  // namespace collage::tensor_program
