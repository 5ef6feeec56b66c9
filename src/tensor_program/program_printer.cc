#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "tensor_program/in_place.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

constexpr int64_t kMostPrinted = 64;  // elements of a constant
constexpr size_t kMostLoops = 64;
constexpr int64_t kMostFactor = INT32_MAX, kMostLanes = 1024;

std::string suffix(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "f";
    case DType::kFloat64:
      return "d";
    case DType::kInt32:
      return "";
    case DType::kInt64:
      return "i64";
    default:
      return "_" + std::string(dtype_name(dtype));
  }
}

std::string real_text(double value, DType dtype) {
  std::string text = std::isnan(value) ? "nan" : std::isinf(value) ? "inf" : "";
  if (!text.empty()) return (std::signbit(value) ? "-" : "") + text + suffix(dtype);
  return decimal_text(value, dtype) + suffix(dtype);
}

std::string constant_text(const TermNode& node) {
  if (is_float(node.dtype)) return real_text(node.real, node.dtype);
  if (node.dtype == DType::kBool) return node.integer != 0 ? "true" : "false";
  return std::to_string(node.integer) + suffix(node.dtype);
}

std::string terms_text(const std::vector<Term>& terms);

/// `least`: the precedence below which parentheses are needed.
std::string text_of(const Term& term, int least) {
  switch (term->op) {
    case TermOp::kConstant:
      return constant_text(*term.get());
    case TermOp::kVar:
      return term->name;
    case TermOp::kLoad:
      return term->name + "[" + terms_text(term->args) + "]";
    case TermOp::kCast:
      return fmt::format("{}({})", dtype_name(term->dtype), terms_text(term->args));
    default:
      break;
  }
  for (const TermSpelling& spelling : term_spellings()) {
    if (spelling.op != term->op) continue;
    if (spelling.precedence == 0)
      return fmt::format("{}({})", spelling.text, terms_text(term->args));
    std::string text;
    if (spelling.arity == 1) {
      // A negated constant would read as another constant.
      const bool number = term->args[0]->op == TermOp::kConstant;
      const std::string inside = text_of(term->args[0], spelling.precedence + 1);
      text = std::string(spelling.text) + (number ? "(" + inside + ")" : inside);
    } else {
      text = fmt::format("{} {} {}", text_of(term->args[0], spelling.precedence), spelling.text,
                         text_of(term->args[1], spelling.precedence + 1));
    }
    return spelling.precedence < least ? "(" + text + ")" : text;
  }
  return "?";
}

std::string terms_text(const std::vector<Term>& terms) {
  std::string text;
  for (const Term& term : terms) text += (text.empty() ? "" : ", ") + text_of(term, 0);
  return text;
}

std::string extent_text(const Term& size, int64_t extent) {
  return size.defined() ? text_of(size, 0) : std::to_string(extent);
}

std::string axes_text(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis& axis : axes)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", axis.name,
                        extent_text(axis.size, axis.extent));
  return text;
}

std::string type_text(const Buffer& buffer) {
  std::vector<std::string> extents;
  for (size_t d = 0; d < buffer.type.shape.size(); ++d)
    extents.push_back(
        extent_text(buffer.sizes.empty() ? Term() : buffer.sizes[d], buffer.type.shape[d]));
  return fmt::format("{}[{}]", dtype_name(buffer.type.dtype), fmt::join(extents, ", "));
}

std::string symbols_text(const std::vector<Symbol>& symbols) {
  std::string text;
  for (const Symbol& symbol : symbols)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", symbol.name, symbol.value);
  return text.empty() ? "" : "(" + text + ") ";
}

std::string scope_text(const std::string& scope) {
  return scope.empty() ? "" : fmt::format(" in \"{}\"", scope);
}

std::string values_text(const Tensor& tensor) {
  std::string text;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    text += text.empty() ? "" : ", ";
    text += is_float(tensor.dtype()) ? real_text(tensor.element_as_double(i), tensor.dtype())
                                     : std::to_string(tensor.element_as_int64(i));
  }
  return text;
}

std::string update_text(const Update& update) {
  return fmt::format("{}({}) {}", combine_text(update.combine), axes_text(update.over),
                     text_of(update.value, 0));
}

/// The stage that an inout of the parameter is, or null.
const Stage* inout_of(const Program& program, const Buffer& buffer) {
  for (const Stage& stage : program.stages)
    if (buffer.name == stage.name + std::string(kInoutSuffix) && buffer.scope == stage.scope &&
        updated_param(program, stage) == &buffer)
      return &stage;
  return nullptr;
}

/// The stage alone, without its updates from `first` on.
std::string value_text(const Stage& stage, size_t& first) {
  std::string text = fmt::format("  {} {}[{}]{}", stage.is_result ? "result" : "stage", stage.name,
                                 axes_text(stage.axes), scope_text(stage.scope));
  if (!stage.external.label.empty()) {
    text += fmt::format(" = extern \"{}\"({}): {}", stage.external.label,
                        fmt::join(stage.external.inputs, ", "), dtype_name(stage.dtype));
  } else if (stage.value.defined()) {
    text += " = " + text_of(stage.value, 0);
  } else if (over_own_axes(stage, stage.updates[0])) {
    text += " = " + update_text(stage.updates[0]);
    first = 1;
  } else {
    text += fmt::format(": {}", dtype_name(stage.dtype));
  }
  return text + ";\n";
}

std::string stage_text(const Stage& stage, bool is_inout) {
  size_t first = 0;
  std::string text = is_inout ? "" : value_text(stage, first);
  for (size_t i = first; i < stage.updates.size(); ++i)
    text += fmt::format("  update {}[{}] = {};\n", stage.name, terms_text(stage.updates[i].at),
                        update_text(stage.updates[i]));
  return text;
}

}  // namespace

std::string_view combine_text(Combine combine) {
  switch (combine) {
    case Combine::kSet:
      return "set";
    case Combine::kSum:
      return "sum";
    case Combine::kProduct:
      return "product";
    case Combine::kMax:
      return "max";
    case Combine::kMin:
      return "min";
  }
  return "";
}

std::optional<Combine> combine_of(std::string_view text) {
  for (const Combine combine :
       {Combine::kSet, Combine::kSum, Combine::kProduct, Combine::kMax, Combine::kMin})
    if (combine_text(combine) == text) return combine;
  return std::nullopt;
}

std::string term_to_string(const Term& term) { return text_of(term, 0); }

std::string primitive_text(const Primitive& step) {
  std::vector<std::string> args = step.names;
  if (step.number != 0) args.push_back(std::to_string(step.number));
  if (step.size.defined()) args.push_back("by " + text_of(step.size, 0));
  if (step.guarded) args.push_back("guarded");
  if (step.masked) args.push_back("masked");
  const std::string where =
      step.update >= 0 ? fmt::format("{}.update({})", step.stage, step.update) : step.stage;
  std::string_view name;
  for (const PrimitiveSpelling& spelling : primitive_spellings())
    if (spelling.kind == step.kind) name = spelling.text;
  return fmt::format("{}.{}({});", where, name, fmt::join(args, ", "));
}

std::string decimal_text(double value, DType dtype) {
  std::string text = dtype == DType::kFloat32 ? fmt::format("{}", static_cast<float>(value))
                                              : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool over_own_axes(const Stage& stage, const Update& update) {
  for (size_t i = 0; i < stage.axes.size(); ++i)
    if (!same(update.at[i], var(stage.axes[i].name))) return false;
  return update.combine != Combine::kSet;
}

const std::vector<PrimitiveSpelling>& primitive_spellings() {
  static const std::vector<PrimitiveSpelling> table = {
      {PrimitiveKind::kSplit, "split", 3, 3, 1, kMostFactor},
      {PrimitiveKind::kFuse, "fuse", 3, 3},
      {PrimitiveKind::kReorder, "reorder", 1, kMostLoops},
      {PrimitiveKind::kVectorise, "vectorise", 1, 1, 0, kMostLanes},
      {PrimitiveKind::kTensorise, "tensorise", 3, 8, 0, kMostFactor},
      {PrimitiveKind::kUnroll, "unroll", 1, 1},
      {PrimitiveKind::kParallel, "parallel", 1, 1},
      {PrimitiveKind::kComputeAt, "compute_at", 2, 2, 0, 0, true},
      {PrimitiveKind::kComputeRoot, "compute_root", 0, 0, 0, 0, true},
      {PrimitiveKind::kInline, "inline", 0, 0, 0, 0, true},
      {PrimitiveKind::kAllowRaces, "allow_races", 0, 0},
      {PrimitiveKind::kHoistStorage, "hoist_storage", 2, 2, 0, 0, true},
  };
  return table;
}

namespace {

std::string declarations_text(const Program& program, int64_t most_printed) {
  std::string text;
  std::set<const Stage*> inouts;
  for (const Buffer& buffer : program.buffers) {
    if (const Stage* stage = inout_of(program, buffer)) {
      inouts.insert(stage);
      text += fmt::format("  inout {}[{}]{}: {};\n", stage->name, axes_text(stage->axes),
                          scope_text(stage->scope), dtype_name(stage->dtype));
      continue;
    }
    text += fmt::format("  {} {}: {}", buffer.is_constant ? "const" : "param", buffer.name,
                        type_text(buffer) + scope_text(buffer.scope));
    if (buffer.value.defined() && buffer.value.size() <= most_printed)
      text += " = {" + values_text(buffer.value) + "}";
    text += ";\n";
  }
  for (const Stage& stage : program.stages) text += stage_text(stage, inouts.count(&stage) != 0);
  if (!program.schedule.empty()) {
    text += "  schedule {\n";
    for (const Primitive& step : program.schedule) text += "    " + primitive_text(step) + "\n";
    text += "  }\n";
  }
  return text;
}

}  // namespace

std::string declarations_text(const Program& program) {
  return declarations_text(program, std::numeric_limits<int64_t>::max());
}

std::string Program::to_string() const {
  return "program " + symbols_text(symbols) + "{\n" + declarations_text(*this, kMostPrinted) +
         "}\n";
}

}  // namespace collage::tensor_program
