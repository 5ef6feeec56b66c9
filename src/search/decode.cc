// From the steps of a scan to a cover: which conversions run before which kernel.
#include "search/forms.h"
#include "search/scan.h"

namespace collage::search {

namespace {

class Decoder {
 public:
  explicit Decoder(const Placement& placement)
      : placement_(placement), compact_(*placement.compact), masks_(compact_.groups.size(), 0) {
    for (size_t g = 0; g < masks_.size(); ++g)
      if (compact_.groups[g].root < 0) masks_[g] = 1;
  }

  Cover run(const std::vector<Step>& steps) {
    for (const Step& step : steps) apply(step);
    return std::move(cover_);
  }

 private:
  void apply(const Step& step) {
    const Column& column = compact_.columns[step.column];
    make_detours(step, false);
    for (const Use& use : column.inputs) make(use.group, use.form);
    cover_.kernels.push_back(column.choices[0]);
    cover_.seconds += column.cost;
    for (const Use& use : column.outputs)
      masks_[use.group] = static_cast<FormMask>(masks_[use.group] | 1u << use.form);
    make_detours(step, true);
    for (const Use& use : column.outputs)
      if (compact_.groups[use.group].is_result) make(use.group, 0);
  }

  void make_detours(const Step& step, bool output) {
    const std::vector<Detour>& detours = placement_.detours[step.column];
    for (size_t d = 0; d < detours.size(); ++d)
      if ((step.detours >> d & 1) && detours[d].output == output)
        make(detours[d].group, detours[d].via);
  }

  void make(uint32_t g, uint32_t form) {
    make_form(compact_.groups[g], masks_[g], form,
              [&](uint32_t from, uint32_t to) { convert(compact_.groups[g], from, to); });
  }

  void convert(const Group& group, uint32_t from, uint32_t to) {
    const SearchProblem& problem = *compact_.problem;
    // Between plain and an encoding of a view, the tensor is the view.
    ChosenConversion conversion;
    conversion.tensor = group.forms[to != 0 ? to : from].tensor;
    const TensorType type =
        problem.graph->node(conversion.tensor.node).expr->type().leaves()[conversion.tensor.leaf];
    const Encoding plain = plain_encoding(type);
    conversion.from = from != 0 ? group.forms[from].encoding : plain;
    conversion.to = to != 0 ? group.forms[to].encoding : plain;
    conversion.seconds = problem.conversion_cost(type, conversion.from, conversion.to);
    conversion.before = cover_.kernels.size();
    cover_.seconds += conversion.seconds + problem.launch_penalty;
    cover_.conversions.push_back(std::move(conversion));
  }

  const Placement& placement_;
  const CompactProblem& compact_;
  std::vector<FormMask> masks_;  // by group: the forms that exist
  Cover cover_;
};

}  // namespace

Cover Scan::decode(const std::vector<Step>& steps) const { return Decoder(placement_).run(steps); }

}  // namespace collage::search
