// Programs as functions of loops in script: script_program.h has the form.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/name_supply.h"
#include "ir/attrs.h"
#include "tensor_program/program_text.h"
#include "tensor_program/script/script_program.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

constexpr std::string_view kKeywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

constexpr int kUnary = 7;

struct BinarySpelling {
  TermOp op;
  std::string_view text;
  int precedence;
  bool of_equal_left = true;  // whether the left operand may be such an operation too
};
constexpr BinarySpelling kBinary[] = {{TermOp::kOr, "or", 1},
                                      {TermOp::kAnd, "and", 2},
                                      {TermOp::kEqual, "==", 4, false},
                                      {TermOp::kNotEqual, "!=", 4, false},
                                      {TermOp::kLess, "<", 4, false},
                                      {TermOp::kLessEqual, "<=", 4, false},
                                      {TermOp::kGreater, ">", 4, false},
                                      {TermOp::kGreaterEqual, ">=", 4, false},
                                      {TermOp::kAdd, "+", 5},
                                      {TermOp::kSubtract, "-", 5},
                                      {TermOp::kMultiply, "*", 6},
                                      {TermOp::kDivide, "/", 6},
                                      {TermOp::kModulo, "%", 6}};

std::string constant_script(const TermNode& node) {
  const std::string_view dtype = dtype_name(node.dtype);
  if (node.dtype == DType::kInt32) return std::to_string(node.integer);
  if (node.dtype == DType::kBool) return node.integer != 0 ? "T.bool(True)" : "T.bool(False)";
  if (!is_float(node.dtype)) return fmt::format("T.{}({})", dtype, node.integer);
  if (std::isfinite(node.real))
    return fmt::format("T.{}({})", dtype, real_script(node.real, node.dtype));
  return fmt::format("T.{}(\"{}{}\")", dtype, std::signbit(node.real) ? "-" : "",
                     std::isnan(node.real) ? "nan" : "inf");
}

class ProgramScript {
 public:
  ProgramScript(const Program& program, std::string margin)
      : program_(program), margin_(std::move(margin)) {}

  Result<std::string> print(const std::string& name) {
    if (!program_.symbols.empty()) return unsupported("a program over symbols");
    std::vector<std::string> params, order;
    bool constants_last = true;
    for (const Buffer& buffer : program_.buffers) {
      order.push_back(buffer.name);
      if (!buffer.is_constant) {
        constants_last = constants_last && params.size() + 1 == order.size();
        params.push_back(TRY(script_name(buffer.name)) + ": " +
                         array_type("Buffer", buffer.type, buffer.scope));
      }
    }
    for (const Stage& stage : program_.stages)
      if (stage.is_result)
        params.push_back(TRY(script_name(stage.name)) + ": " +
                         array_type("Buffer", {stage.shape(), stage.dtype}, stage.scope));
    line(0, "@T.prim_func");
    line(0, "def {}({}):", TRY(script_name(name)), fmt::join(params, ", "));
    attributes(constants_last ? "" : fmt::format("{}", fmt::join(order, " ")));
    for (const Buffer& buffer : program_.buffers)
      if (buffer.is_constant) TRY(constant(buffer));
    for (const Stage& stage : program_.stages)
      if (!stage.is_result)
        line(1, "{} = {}", TRY(script_name(stage.name)),
             array_type("alloc_buffer", {stage.shape(), stage.dtype}, ""));
    for (const Stage& stage : program_.stages)
      TRY(this->stage(stage).with_context("stage " + stage.name));
    return std::move(text_);
  }

 private:
  struct Walked {
    Axis axis;
    std::string_view kind;  // spatial, reduce, opaque
  };

  template <typename... Args>
  void line(int level, fmt::format_string<Args...> format, Args&&... args) {
    text_ += margin_ + std::string(4 * static_cast<size_t>(level), ' ') +
             fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  static std::string array_type(std::string_view what, const TensorType& type,
                                const std::string& scope) {
    return fmt::format("T.{}({}, \"{}\"{})", what, shape_script(type.shape), dtype_name(type.dtype),
                       scope.empty() ? "" : fmt::format(", scope=\"{}\"", scope));
  }

  void attributes(const std::string& buffers) {
    std::string schedule;
    if (!program_.schedule.empty()) {  // as the text of programs has it, in one line
      Program scheduled = program_;
      scheduled.buffers.clear();
      scheduled.stages.clear();
      schedule = declarations_text(scheduled);
      schedule = schedule.substr(schedule.find('{') + 1);
      schedule.resize(schedule.rfind('}'));
      std::string words;
      for (const char c : schedule)
        if (c != ' ' && c != '\n')
          words += c;
        else if (!words.empty() && words.back() != ' ')
          words += ' ';
      schedule = words.substr(words.find_first_not_of(' '));
      schedule.resize(schedule.find_last_not_of(' ') + 1);
    }
    if (!schedule.empty() && !buffers.empty())
      line(1, "T.func_attr({{\"buffers\": \"{}\", \"schedule\": \"{}\"}})", buffers, schedule);
    else if (!schedule.empty())
      line(1, "T.func_attr({{\"schedule\": \"{}\"}})", schedule);
    else if (!buffers.empty())
      line(1, "T.func_attr({{\"buffers\": \"{}\"}})", buffers);
  }

  Status constant(const Buffer& buffer) {
    const DType dtype = buffer.type.dtype;
    if (!buffer.value.defined() || dtype == DType::kFloat16 || dtype == DType::kBFloat16)
      return unsupported("constant {} of {}", buffer.name, buffer.type.to_string());
    std::vector<std::string> values;
    for (int64_t i = 0; i < buffer.value.size(); ++i) {
      const Term value = is_float(dtype)
                             ? tensor_program::constant(buffer.value.element_as_double(i), dtype)
                             : integer_constant(buffer.value.element_as_int64(i), dtype);
      const bool plain = is_float(dtype) ? std::isfinite(value->real) : dtype != DType::kBool;
      values.push_back(!plain            ? constant_script(*value.get())
                       : is_float(dtype) ? real_script(value->real, dtype)
                                         : std::to_string(value->integer));
    }
    line(1, "{} = T.allocate_const(shape={}, dtype=\"{}\", data=[{}])",
         TRY(script_name(buffer.name)), shape_script(buffer.type.shape), dtype_name(dtype),
         fmt::join(values, ", "));
    return {};
  }

  Status stage(const Stage& stage) {
    std::vector<Walked> own;
    for (const Axis& axis : stage.axes) own.push_back({axis, "spatial"});
    if (!stage.external.label.empty()) return unsupported("a call of an external function");
    if (stage.value.defined()) {
      TRY(block(stage, own, Term(), nullptr));
    } else {
      const Update& first = stage.updates[0];
      const bool sets = first.combine == Combine::kSet;
      const Term start = sets ? zero(stage.dtype) : neutral(first.combine, stage.dtype);
      bool own_indices = !sets;
      for (size_t d = 0; d < stage.axes.size(); ++d)
        own_indices = own_indices && is_variable(first.at[d], stage.axes[d].name);
      if (!own_indices) TRY(block(stage, own, start, nullptr));
      for (const Update& update : stage.updates)
        TRY(block(stage, walked(stage, update), own_indices && &update == &first ? start : Term(),
                  &update));
      return {};
    }
    for (const Update& update : stage.updates)
      TRY(block(stage, walked(stage, update), Term(), &update));
    return {};
  }

  static std::vector<Walked> walked(const Stage& stage, const Update& update) {
    std::vector<Walked> walked;
    for (const Axis& axis : walked_axes(stage, update)) walked.push_back({axis, "spatial"});
    const size_t over = walked.size() - update.over.size();
    for (size_t i = over; i < walked.size(); ++i)
      walked[i].kind = update.combine == Combine::kSet ? "opaque" : "reduce";
    return walked;
  }

  /// A nest of loops with one block: of the stage's value, of what it starts from, of an update.
  Status block(const Stage& stage, const std::vector<Walked>& walked, const Term& start,
               const Update* update) {
    NameSupply names;
    for (const Buffer& buffer : program_.buffers) names.reserve(buffer.name);
    for (const Stage& other : program_.stages) names.reserve(other.name);
    std::vector<std::string> loops, extents, axes;
    std::string kinds;
    names_.clear();
    for (const auto& [axis, kind] : walked) {
      loops.push_back(TRY(script_name(axis.name)));
      names.reserve(axis.name);
      extents.push_back(std::to_string(axis.extent));
      kinds += static_cast<char>(std::toupper(static_cast<unsigned char>(kind[0])));
    }
    for (const std::string& loop : loops) axes.push_back(names_[loop] = names.fresh("v" + loop));
    int level = 1;
    if (!loops.empty())
      line(level++, "for {} in {}({}):", fmt::join(loops, ", "),
           loops.size() == 1 ? "range" : "T.grid", fmt::join(extents, ", "));
    line(level++, "with T.block(\"{}\"):", stage.name);
    if (loops.size() > 1 && kinds.find('O') == std::string::npos)
      line(level, "{} = T.axis.remap(\"{}\", [{}])", fmt::join(axes, ", "), kinds,
           fmt::join(loops, ", "));
    else
      for (size_t i = 0; i < axes.size(); ++i)
        line(level, "{} = T.axis.{}({}, {})", axes[i], walked[i].kind, extents[i], loops[i]);
    const std::vector<Term> own = stage.indices();
    if (start.defined()) {
      line(level, "with T.init():");
      line(level + 1, "{} = {}", TRY(element(stage.name, own)), TRY(text(start, 0)));
    } else if (update == nullptr) {
      line(level, "{} = {}", TRY(element(stage.name, own)), TRY(text(stage.value, 0)));
    }
    if (update == nullptr) return {};
    const std::string to = TRY(element(stage.name, update->at));
    const std::string value = TRY(text(update->value, 0));
    switch (update->combine) {
      case Combine::kSum:
        line(level, "{} += {}", to, value);
        return {};
      case Combine::kProduct:
        line(level, "{} *= {}", to, value);
        return {};
      case Combine::kMax:
      case Combine::kMin:
        line(level, "{} = T.{}({}, {})", to, combine_text(update->combine), to, value);
        return {};
      case Combine::kSet:
        break;
    }
    for (const TermOp op : {TermOp::kAdd, TermOp::kMultiply, TermOp::kMax, TermOp::kMin})
      if (update->value->op == op)
        for (const Term& operand : update->value->args)
          if (same(operand, load(stage.name, stage.dtype, update->at)))
            return unsupported("set() of what is a sum, product, max or min with the element");
    line(level, "{} = {}", to, value);
    return {};
  }

  Result<std::string> element(const std::string& array, const std::vector<Term>& at) {
    return array + "[" + (at.empty() ? "()" : TRY(list(at))) + "]";
  }

  Result<std::string> list(const std::vector<Term>& terms) {
    std::string text;
    for (const Term& term : terms) text += (text.empty() ? "" : ", ") + TRY(this->text(term, 0));
    return text;
  }

  /// `least`: the precedence below which parentheses are needed.
  Result<std::string> text(const Term& term, int least) {
    const auto wrapped = [&](const std::string& text, int precedence) {
      return precedence < least ? "(" + text + ")" : text;
    };
    switch (term->op) {
      case TermOp::kConstant:
        return constant_script(*term.get());
      case TermOp::kVar: {
        const auto found = names_.find(term->name);
        if (found == names_.end()) return unsupported("{}, which no loop walks", term->name);
        return found->second;
      }
      case TermOp::kLoad:
        return element(term->name, term->args);
      case TermOp::kCast:
        return fmt::format("T.Cast(\"{}\", {})", dtype_name(term->dtype), TRY(list(term->args)));
      case TermOp::kNot:
        return wrapped("not " + TRY(text(term->args[0], 3)), 3);
      case TermOp::kNegate: {
        const Term& inside = term->args[0];  // a negated number would read as another number
        const bool number = inside->op == TermOp::kConstant && inside.dtype() == DType::kInt32;
        const std::string operand = TRY(text(inside, kUnary));
        return wrapped(number ? "-(" + operand + ")" : "-" + operand, kUnary);
      }
      default:
        break;
    }
    for (const BinarySpelling& spelling : kBinary) {
      if (spelling.op != term->op) continue;
      const bool whole = term->op == TermOp::kDivide && !is_float(term->dtype);
      const int left = spelling.precedence + (spelling.of_equal_left ? 0 : 1);
      return wrapped(
          fmt::format("{} {} {}", TRY(text(term->args[0], left)), whole ? "//" : spelling.text,
                      TRY(text(term->args[1], spelling.precedence + 1))),
          spelling.precedence);
    }
    for (const TermSpelling& spelling : term_spellings())
      if (spelling.op == term->op)
        return fmt::format("T.{}({})", spelling.text, TRY(list(term->args)));
    return internal_error("a term without a spelling");
  }

  const Program& program_;
  const std::string margin_;
  std::string text_;
  std::map<std::string, std::string> names_;  // of the block's axes, by those in the program
};

}  // namespace

Result<std::string> script_name(const std::string& name) {
  bool plain = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  for (const char c : name)
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_');
  if (plain && std::count(std::begin(kKeywords), std::end(kKeywords), name) == 0) return name;
  return unsupported("{} is no name in script", attr_to_string(AttrValue(name)));
}

std::string shape_script(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string real_script(double value, DType dtype) {
  std::string text = dtype == DType::kFloat32 ? fmt::format("{}", static_cast<float>(value))
                                              : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Result<std::string> program_script(const std::string& name, const Program& program,
                                   const std::string& margin) {
  return ProgramScript(program, margin).print(name);
}

}  // namespace collage::tensor_program
