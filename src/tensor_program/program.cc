#include "tensor_program/program.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/check.h"
#include "tensor_program/extent.h"
#include "tensor_program/intrinsic.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

using NameSet = std::unordered_set<std::string>;

void add_names(const Term& term, std::vector<std::string>& names, NameSet& seen,
               std::unordered_set<const TermNode*>& visited) {
  if (!visited.insert(term.get()).second) return;
  if (term->op == TermOp::kLoad && seen.insert(term->name).second) names.push_back(term->name);
  for (const Term& arg : term->args) add_names(arg, names, seen, visited);
}

bool same_terms(const std::vector<Term>& a, const std::vector<Term>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

class Verifier {
 public:
  Verifier(const Program& program, std::string& where) : program_(program), where_(where) {}

  Status run() {
    for (const Symbol& symbol : program_.symbols) {
      if (!symbols_.emplace(symbol.name, symbol.value).second)
        return wrong("{} stands twice", symbol.name);
      if (symbol.value < 1) return wrong("{} = {}", symbol.name, symbol.value);
    }
    for (const Buffer& buffer : program_.buffers) {
      where_ = buffer.name;
      TRY(define(buffer.name));
      TRY(check_sizes(buffer));
      TRY(checked_num_elements(buffer.type.shape).with_context(buffer.name));
      if (buffer.value.defined() &&
          (buffer.value.shape() != buffer.type.shape || buffer.value.dtype() != buffer.type.dtype))
        return wrong("{} holds a tensor of another type", buffer.name);
    }
    bool results = false;
    for (const Stage& stage : program_.stages) {
      where_ = stage.name;
      TRY(check(stage).with_context("stage " + stage.name));
      TRY(define(stage.name));
      results = results || stage.is_result;
    }
    where_.clear();
    if (!results) return wrong("a program without a result");
    where_ = "schedule";
    for (const Primitive& step : program_.schedule) TRY(check(step));
    return {};
  }

 private:
  template <typename... Args>
  static Status wrong(fmt::format_string<Args...> format, Args&&... args) {
    return bad_model("tensor program: {}", fmt::format(format, std::forward<Args>(args)...));
  }

  Status define(const std::string& name) {
    if (!defined_.insert(name).second) return wrong("{} stands twice", name);
    return {};
  }

  Status check_size(const Term& size, int64_t extent, const std::string& of) const {
    if (!size.defined() || value_of(size, symbols_) == extent) return {};
    return wrong("{} is of extent {}, not {}", of, extent, term_to_string(size));
  }
  Status check_sizes(const Buffer& buffer) const {
    if (buffer.sizes.empty()) return {};
    if (buffer.sizes.size() != buffer.type.shape.size())
      return wrong("{} extents of {}", buffer.sizes.size(), buffer.name);
    for (size_t d = 0; d < buffer.sizes.size(); ++d)
      TRY(check_size(buffer.sizes[d], buffer.type.shape[d], buffer.name));
    return {};
  }

  /// The axes get into `bound`. Those of an update over symbols may be empty.
  Status check(const std::vector<Axis>& axes, NameSet& bound, bool of_update) const {
    for (const Axis& axis : axes) {
      if (!bound.insert(axis.name).second) return wrong("axis {} stands twice", axis.name);
      if (axis.extent < (of_update && axis.size.defined() ? 0 : 1))
        return wrong("axis {} of extent {}", axis.name, axis.extent);
      TRY(check_size(axis.size, axis.extent, "axis " + axis.name));
    }
    return {};
  }

  Status check(const Stage& stage) {
    NameSet own;
    for (const auto& [name, value] : symbols_) own.insert(name);
    TRY(check(stage.axes, own, false));
    TRY(checked_num_elements(stage.shape()));
    const int kinds = (stage.value.defined() ? 1 : 0) + (stage.external.label.empty() ? 0 : 1);
    if (kinds > 1 || (kinds == 0 && stage.updates.empty()))
      return wrong("neither one value nor updates");
    if (stage.value.defined()) {
      if (stage.value.dtype() != stage.dtype) return wrong("a value of another type");
      TRY(check(stage.value, own));
    }
    for (const std::string& input : stage.external.inputs)
      if (defined_.count(input) == 0) return wrong("there is no {} above", input);
    for (const Update& update : stage.updates) {
      if (update.at.size() != stage.axes.size()) return wrong("{} indices", update.at.size());
      NameSet bound = own;
      TRY(check(update.over, bound, true));
      Shape points = stage.shape();
      for (const Axis& axis : update.over) points.push_back(axis.extent);
      TRY(checked_num_elements(points));
      for (const Term& index : update.at) TRY(check(index, bound));
      if (update.value.dtype() != stage.dtype) return wrong("a value of another type");
      TRY(check(update.value, bound, &stage, &update));
    }
    return {};
  }

  /// The value of a stage's update may read what it writes.
  Status check(const Term& root, const NameSet& bound, const Stage* own = nullptr,
               const Update* update = nullptr) {
    std::unordered_set<const TermNode*> visited;
    std::vector<Term> left{root};
    while (!left.empty()) {
      const Term term = left.back();
      left.pop_back();
      if (!visited.insert(term.get()).second) continue;
      if (term->op == TermOp::kVar && bound.count(term->name) == 0)
        return wrong("nothing binds {}", term->name);
      if (term->op == TermOp::kLoad) {
        const bool is_own = own != nullptr && term->name == own->name;
        if (is_own && !same_terms(term->args, update->at))
          return wrong("an update reads {} elsewhere than where it writes", term->name);
        if (!is_own && defined_.count(term->name) == 0)
          return wrong("there is no {} above", term->name);
        const TensorType type = program_.type_of(term->name);
        if (type.shape.size() != term->args.size())
          return wrong("{} indices for {}", term->args.size(), term->name);
        if (type.dtype != term->dtype) return wrong("{} is of another type", term->name);
        for (const Term& index : term->args)
          if (!is_integer(index.dtype())) return wrong("an index of {} is no integer", term->name);
      }
      left.insert(left.end(), term->args.begin(), term->args.end());
    }
    return {};
  }

  Status check(const Primitive& step) const {
    const Stage* stage = program_.find_stage(step.stage);
    if (stage == nullptr) return wrong("the schedule names {}, which is no stage", step.stage);
    if (step.update < -1 || step.update >= static_cast<int>(stage->updates.size()))
      return wrong("{} has no update {}", step.stage, step.update);
    const PrimitiveSpelling& form = primitive_spellings()[static_cast<size_t>(step.kind)];
    if (step.names.size() < form.least_names || step.names.size() > form.most_names)
      return wrong("{}.{} takes no {} names", step.stage, form.text, step.names.size());
    const bool over_symbols = step.size.defined() && step.kind == PrimitiveKind::kSplit;
    if (step.size.defined() && (!over_symbols || step.number != 0))
      return wrong("{}.{} by {}", step.stage, form.text, term_to_string(step.size));
    for (const std::string& name : unknown_symbols(step.size, symbols_))
      return wrong("nothing binds {}", name);
    if (!over_symbols && (step.number < form.least_number || step.number > form.most_number))
      return wrong("{}.{} by {}", step.stage, form.text, step.number);
    if (step.update >= 0 && form.of_whole_stages)
      return wrong("{}.{} is for stages, not for updates", step.stage, form.text);
    if (step.kind == PrimitiveKind::kTensorise) TRY(check_tensorise(*stage, step));
    if (is_at_loop(step) && program_.find_stage(step.names[0]) == nullptr)
      return wrong("{} is computed at {}, which is no stage", step.stage, step.names[0]);
    return {};
  }

  Status check_tensorise(const Stage& stage, const Primitive& step) const {
    const Intrinsic* intrinsic = find_intrinsic(step);
    if (intrinsic == nullptr) return wrong("there is no intrinsic {}", step.names.back());
    if (step.update < 0) return wrong("{}.tensorise is for updates", step.stage);
    return match_tensorised(program_, stage, step, *intrinsic).status();
  }

  const Program& program_;
  std::string& where_;
  Symbols symbols_;
  NameSet defined_;
};

bool equal(const Stage& a, const Stage& b) {
  return a.name == b.name && a.dtype == b.dtype && a.axes == b.axes && same(a.value, b.value) &&
         a.external == b.external && a.is_result == b.is_result && a.scope == b.scope &&
         std::equal(a.updates.begin(), a.updates.end(), b.updates.begin(), b.updates.end(),
                    [](const Update& u, const Update& v) {
                      return same_terms(u.at, v.at) && u.over == v.over && u.combine == v.combine &&
                             same(u.value, v.value);
                    });
}

bool equal(const Buffer& a, const Buffer& b) {
  if (a.name != b.name || a.type != b.type || a.is_constant != b.is_constant ||
      a.scope != b.scope || !same_terms(a.sizes, b.sizes))
    return false;
  return !a.value.defined() || !b.value.defined() ||
         std::memcmp(a.value.raw(), b.value.raw(), a.value.bytes()) == 0;
}

}  // namespace

bool Axis::operator==(const Axis& other) const {
  return name == other.name && extent == other.extent && same(size, other.size);
}

bool Primitive::operator==(const Primitive& other) const {
  return stage == other.stage && update == other.update && kind == other.kind &&
         names == other.names && number == other.number && guarded == other.guarded &&
         masked == other.masked && same(size, other.size);
}

Shape Stage::shape() const {
  Shape result;
  for (const Axis& axis : axes) result.push_back(axis.extent);
  return result;
}

std::vector<Axis> numbered_axes(std::string_view prefix, const Shape& shape) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); ++d)
    axes.push_back({std::string(prefix) + std::to_string(d), shape[d]});
  return axes;
}

std::vector<Term> Stage::indices() const {
  std::vector<Term> result;
  for (const Axis& axis : axes) result.push_back(var(axis.name));
  return result;
}

const Buffer* Program::find_buffer(std::string_view name) const {
  for (const Buffer& buffer : buffers)
    if (buffer.name == name) return &buffer;
  return nullptr;
}
const Stage* Program::find_stage(std::string_view name) const {
  for (const Stage& stage : stages)
    if (stage.name == name) return &stage;
  return nullptr;
}
Stage* Program::find_stage(std::string_view name) {
  return const_cast<Stage*>(std::as_const(*this).find_stage(name));
}

TensorType Program::type_of(std::string_view name) const {
  if (const Buffer* buffer = find_buffer(name)) return buffer->type;
  const Stage* stage = find_stage(name);
  COLLAGE_CHECK(stage != nullptr, "no buffer or stage {}", name);
  return {stage->shape(), stage->dtype};
}

std::vector<std::string> Program::results() const {
  std::vector<std::string> names;
  for (const Stage& stage : stages)
    if (stage.is_result) names.push_back(stage.name);
  return names;
}

Status verify(const Program& program, std::string* where) {
  std::string unwanted;
  return Verifier(program, where != nullptr ? *where : unwanted).run();
}

bool equal(const Program& a, const Program& b) {
  return a.symbols == b.symbols && a.schedule == b.schedule &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    [](const Buffer& x, const Buffer& y) { return equal(x, y); }) &&
         std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const Stage& x, const Stage& y) { return equal(x, y); });
}

std::vector<std::string> loaded_names(const Term& term) {
  std::vector<std::string> names;
  NameSet seen;
  std::unordered_set<const TermNode*> visited;
  add_names(term, names, seen, visited);
  return names;
}

std::vector<std::string> loaded_names(const Stage& stage) {
  std::vector<std::string> names = stage.external.inputs;
  NameSet seen(names.begin(), names.end());
  seen.insert(stage.name);
  std::unordered_set<const TermNode*> visited;
  for_each_term(stage, [&](const Term& term) { add_names(term, names, seen, visited); });
  return names;
}

std::vector<Axis> walked_axes(const Stage& stage, const Update& update) {
  NameSet named;
  std::unordered_set<const TermNode*> visited;
  std::vector<Term> left = update.at;
  while (!left.empty()) {
    const Term term = left.back();
    left.pop_back();
    if (!visited.insert(term.get()).second) continue;
    if (term->op == TermOp::kVar) named.insert(term->name);
    left.insert(left.end(), term->args.begin(), term->args.end());
  }
  std::vector<Axis> axes;
  for (const Axis& axis : stage.axes)
    if (named.count(axis.name) != 0) axes.push_back(axis);
  axes.insert(axes.end(), update.over.begin(), update.over.end());
  return axes;
}

Term neutral(Combine combine, DType dtype) {
  switch (combine) {
    case Combine::kProduct:
      return constant(1, dtype);
    case Combine::kMax:
      return lowest(dtype);
    case Combine::kMin:
      return highest(dtype);
    case Combine::kSum:
    case Combine::kSet:
      break;
  }
  return zero(dtype);
}

Term combined(Combine combine, const Term& a, const Term& b) {
  switch (combine) {
    case Combine::kSet:
      return b;
    case Combine::kSum:
      return a + b;
    case Combine::kProduct:
      return a * b;
    case Combine::kMax:
      return max(a, b);
    case Combine::kMin:
      return min(a, b);
  }
  return {};
}

Term combined_pairwise(Combine combine, std::vector<Term> terms) {
  while (terms.size() > 1) {
    const size_t half = terms.size() / 2;
    for (size_t i = 0; i < half; ++i) terms[i] = combined(combine, terms[i], terms[i + half]);
    terms.resize(half);
  }
  return terms[0];
}

}  // namespace collage::tensor_program
