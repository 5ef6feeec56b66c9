// Programs as functions of loops in script: script_program.h has the form.
#include <algorithm>

#include "base/name_supply.h"
#include "frontend/script/script_program.h"
#include "ir/attrs.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

class ProgramScript {
 public:
  explicit ProgramScript(const Program& program) : program_(program) {}

  Result<std::string> print(const std::string& name) {
    if (!program_.symbols.empty()) return unsupported("a program over symbols");
    std::vector<std::string> params;
    for (const Buffer& buffer : program_.buffers)
      if (!buffer.is_constant)
        params.push_back(TRY(declared(buffer.name, ": T.Buffer", buffer.type, buffer.scope)));
    for (const Stage& stage : program_.stages)
      if (stage.is_result) params.push_back(TRY(declared(stage, ": T.Buffer")));
    add_line(text_, 1, "@T.prim_func");
    add_line(text_, 1, "def {}({}):", TRY(script_name(name)), fmt::join(params, ", "));
    attributes();
    for (const Buffer& buffer : program_.buffers)
      if (buffer.is_constant) TRY(constant(buffer));
    for (const Stage& stage : program_.stages)
      if (!stage.is_result) add_line(text_, 2, "{}", TRY(declared(stage, " = T.alloc_buffer")));
    for (const Stage& stage : program_.stages)
      TRY(this->stage(stage).with_context("stage " + stage.name));
    return std::move(text_);
  }

 private:
  static Result<std::string> declared(const std::string& name, std::string_view form,
                                      const TensorType& type, const std::string& scope) {
    return TRY(script_name(name)) + array_script(form, type, scope);
  }
  static Result<std::string> declared(const Stage& stage, std::string_view form) {
    return declared(stage.name, form, {stage.shape(), stage.dtype}, stage.scope);
  }

  void attributes() {
    std::vector<std::string> attrs, names, steps;
    for (const Buffer& buffer : program_.buffers) names.push_back(buffer.name);
    for (const Primitive& step : program_.schedule) steps.push_back(primitive_text(step));
    if (!std::is_partitioned(program_.buffers.begin(), program_.buffers.end(),
                             [](const Buffer& buffer) { return !buffer.is_constant; }))
      attrs.push_back(fmt::format("\"buffers\": \"{}\"", fmt::join(names, " ")));
    if (!steps.empty()) attrs.push_back(fmt::format("\"schedule\": \"{}\"", fmt::join(steps, " ")));
    if (!attrs.empty()) add_line(text_, 2, "T.func_attr({{{}}})", fmt::join(attrs, ", "));
  }

  Status constant(const Buffer& buffer) {
    const auto& [shape, dtype] = buffer.type;
    if (!buffer.value.defined() || dtype == DType::kFloat16 || dtype == DType::kBFloat16)
      return unsupported("constant {} of {}", buffer.name, buffer.type.to_string());
    std::vector<std::string> values;
    for (int64_t i = 0; i < buffer.value.size(); ++i)
      values.push_back(number_script(
          is_float(dtype) ? tensor_program::constant(buffer.value.element_as_double(i), dtype)
                          : integer_constant(buffer.value.element_as_int64(i), dtype)));
    add_line(text_, 2, "{} = T.allocate_const(shape={}, dtype=\"{}\", data=[{}])",
             TRY(script_name(buffer.name)), shape_script(shape), dtype_name(dtype),
             fmt::join(values, ", "));
    return {};
  }

  Status stage(const Stage& stage) {
    if (!stage.external.label.empty()) return unsupported("a call of an external function");
    const std::string own(stage.axes.size(), 'S');
    Term start;  // of the first update's block
    if (stage.value.defined()) {
      TRY(block(stage, stage.axes, own,
                [&](int level) { return assignment(level, stage, stage.value); }));
    } else {
      const Update& first = stage.updates[0];
      start = neutral(first.combine, stage.dtype);
      if (!over_own_axes(stage, first)) {
        TRY(block(stage, stage.axes, own, [&](int level) { return init(level, stage, start); }));
        start = Term();
      }
    }
    for (const Update& update : stage.updates) {
      const std::vector<Axis> walked = walked_axes(stage, update);
      std::string kinds(walked.size() - update.over.size(), 'S');
      kinds.append(update.over.size(), update.combine == Combine::kSet ? 'O' : 'R');
      TRY(block(stage, walked, kinds, [&](int level) -> Status {
        if (start.defined()) TRY(init(level, stage, start));
        return this->update(level, stage, update);
      }));
      start = Term();
    }
    return {};
  }

  /// A nest of loops with one block.
  template <typename Inside>
  Status block(const Stage& stage, const std::vector<Axis>& walked, const std::string& kinds,
               Inside inside) {
    NameSupply names;
    for (const Buffer& buffer : program_.buffers) names.reserve(buffer.name);
    for (const Stage& other : program_.stages) names.reserve(other.name);
    std::vector<std::string> loops, axes;
    std::vector<int64_t> extents;
    for (const Axis& axis : walked) {
      loops.push_back(TRY(script_name(axis.name)));
      names.reserve(axis.name);
      extents.push_back(axis.extent);
    }
    names_.clear();
    for (const std::string& loop : loops) axes.push_back(names_[loop] = names.fresh("v" + loop));
    int level = 2;
    if (!loops.empty())
      add_line(text_, level++, "for {} in {}({}):", fmt::join(loops, ", "),
               loops.size() == 1 ? "range" : "T.grid", fmt::join(extents, ", "));
    add_line(text_, level++, "with T.block(\"{}\"):", stage.name);
    if (loops.size() > 1 && kinds.find('O') == std::string::npos)
      add_line(text_, level, "{} = T.axis.remap(\"{}\", [{}])", fmt::join(axes, ", "), kinds,
               fmt::join(loops, ", "));
    else
      for (size_t i = 0; i < axes.size(); ++i)
        add_line(text_, level, "{} = T.axis.{}({}, {})", axes[i], axis_kind(kinds[i]), extents[i],
                 loops[i]);
    return inside(level);
  }

  static std::string_view axis_kind(char letter) {
    for (const AxisKind& kind : kAxisKinds)
      if (kind.letter == letter) return kind.name;
    return "";
  }

  Status assignment(int level, const Stage& stage, const Term& value) {
    add_line(text_, level, "{} = {}", TRY(element_script(stage.name, stage.indices(), names_)),
             TRY(term_script(value, names_)));
    return {};
  }

  Status init(int level, const Stage& stage, const Term& start) {
    add_line(text_, level, "with T.init():");
    return assignment(level + 1, stage, start);
  }

  Status update(int level, const Stage& stage, const Update& update) {
    const std::string to = TRY(element_script(stage.name, update.at, names_));
    const std::string value = TRY(term_script(update.value, names_));
    const Term own = load(stage.name, stage.dtype, update.at);
    for (const auto& [combine, op, assignment] : kCombineSpellings) {
      if (combine == update.combine) {
        if (assignment.empty())
          add_line(text_, level, "{} = T.{}({}, {})", to, combine_text(combine), to, value);
        else
          add_line(text_, level, "{} {} {}", to, assignment, value);
        return {};
      }
      if (update.combine == Combine::kSet && op == update.value->op &&
          (same(update.value->args[0], own) || same(update.value->args[1], own)))
        return unsupported("set() of what is a sum, product, max or min with the element");
    }
    add_line(text_, level, "{} = {}", to, value);
    return {};
  }

  const Program& program_;
  std::string text_;
  ScriptNames names_;  // of the block's axes, by those in the program
};

}  // namespace

Result<std::string> program_script(const std::string& name, const Program& program) {
  return ProgramScript(program).print(name);
}

}  // namespace collage::tensor_program
