#include "tensor_program/accesses.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/printable.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"
#include "tensor_program/range.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program)
      : program_(program), elements_(element_ranges(program)) {}

  Status run(std::string& where) {
    for (const Buffer& buffer : program_.buffers) arrays_[buffer.name] = buffer.type;
    for (const Stage& stage : program_.stages) {
      where = stage.name;
      arrays_[stage.name] = {stage.shape(), stage.dtype};
      TRY(check(stage).with_context("stage " + printable(stage.name)));
    }
    return {};
  }

 private:
  Ranges ranges(const std::vector<Axis>& axes) const {
    return Ranges(axes, [this](const std::string& array) { return elements_.at(array); });
  }

  Status check(const Stage& stage) const {
    if (!stage.external.label.empty()) TRY(check_external(stage));
    if (stage.value.defined()) {
      Ranges known = ranges(stage.axes);
      TRY(check_reads(stage.value, stage.axes, known));
    }
    for (const Update& update : stage.updates) {
      std::vector<Axis> axes = stage.axes;
      axes.insert(axes.end(), update.over.begin(), update.over.end());
      Ranges known = ranges(axes);
      for (size_t d = 0; d < update.at.size(); ++d) {
        TRY(check_reads(update.at[d], axes, known));
        TRY(check_index(update.at[d], stage.axes[d].extent, axes, known)
                .with_context(fmt::format("dimension {} is written", d)));
      }
      TRY(check_reads(update.value, axes, known));
    }
    return {};
  }

  Status check_external(const Stage& stage) const {
    const ExternalFunction* function = TRY(require_external(stage.external.label));
    std::vector<TensorType> inputs;
    for (const std::string& input : stage.external.inputs) inputs.push_back(arrays_.at(input));
    const TensorType type = TRY(result_type(*function, inputs));
    const TensorType stands{stage.shape(), stage.dtype};
    if (!(type == stands))
      return bad_model("{} gives a {}, not a {}", stage.external.label, type.to_string(),
                       stands.to_string());
    return {};
  }

  /// Every load of the term, those in indices included.
  Status check_reads(const Term& root, const std::vector<Axis>& axes, Ranges& known) const {
    std::unordered_set<const TermNode*> visited;
    std::vector<Term> left{root};
    while (!left.empty()) {
      const Term term = left.back();
      left.pop_back();
      if (!visited.insert(term.get()).second) continue;
      if (term->op == TermOp::kLoad) {
        const Shape& shape = arrays_.at(term->name).shape;
        for (size_t d = 0; d < shape.size(); ++d)
          TRY(check_index(term->args[d], shape[d], axes, known)
                  .with_context(
                      fmt::format("dimension {} of {} is read", d, printable(term->name))));
      }
      left.insert(left.end(), term->args.begin(), term->args.end());
    }
    return {};
  }

  static Status check_index(const Term& index, int64_t extent, const std::vector<Axis>& axes,
                            Ranges& known) {
    std::optional<Range> range = known.of(index);
    const auto inside = [&] { return range->low >= 0 && range->high < extent; };
    if (range && inside()) return {};
    if (range)
      // j / 16 * 16 + j % 16 is j: what is known of the parts alone says less.
      if (const auto simpler = known.of(simplify(index, axes)))
        range = {std::max(range->low, simpler->low), std::min(range->high, simpler->high)};
    if (range && inside()) return {};
    const std::string text = printable(term_to_string(index));
    if (!range) return bad_model("the index {} may overflow; its range has to be known", text);
    return bad_model("the index {} runs from {} to {} and has to stay from 0 to {}", text,
                     range->low, range->high, extent - 1);
  }

  const Program& program_;
  std::unordered_map<std::string, TensorType> arrays_;
  const ElementRanges elements_;
};

}  // namespace

Status check_accesses(const Program& program, std::string* where) {
  std::string unwanted;
  return Checker(program).run(where != nullptr ? *where : unwanted);
}

}  // namespace collage::tensor_program
