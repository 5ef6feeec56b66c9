#include "tensor_program/generalise.h"

#include <algorithm>
#include <unordered_map>

#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

/// What a symbol's value is in the program. No extent that is made of it is 0: it divides by few
/// numbers.
constexpr int64_t kSomeExtent = 211;

/// Dimensions of arrays and extents of loops that are equal whatever the shape.
class Generaliser {
 public:
  explicit Generaliser(const Program& program) : program_(program) { program_.schedule.clear(); }

  Result<Generalised> run() {
    collect();
    for (const Stage& stage : program_.stages) {
      if (!stage.external.label.empty())
        return unsupported("a function of a library is called for one shape");
      tie(stage);
    }
    name_symbols();
    if (program_.symbols.empty()) return unsupported("no extent of the program may vary");
    write_extents();
    for (Stage& stage : program_.stages)
      if (stage.value.defined()) follow_counts(stage);
    TRY(verify(program_));
    return Generalised{std::move(program_), std::move(values_)};
  }

 private:
  struct Class {
    size_t parent;
    int64_t extent;
    bool fixed;
    int symbol = -1;
  };
  /// The variables that a term may read, and the class of each.
  using Variables = std::unordered_map<std::string, size_t>;

  size_t add(int64_t extent, bool fixed = false) {
    classes_.push_back({classes_.size(), extent, fixed});
    return classes_.size() - 1;
  }
  size_t root(size_t at) {
    while (classes_[at].parent != at)
      at = classes_[at].parent = classes_[classes_[at].parent].parent;
    return at;
  }
  void fix(size_t at) { classes_[root(at)].fixed = true; }
  void unite(size_t a, size_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    const bool fixed =
        classes_[a].fixed || classes_[b].fixed || classes_[a].extent != classes_[b].extent;
    classes_[std::max(a, b)].parent = std::min(a, b);
    classes_[std::min(a, b)].fixed = fixed;
    if (fixed) classes_[std::max(a, b)].fixed = true;
  }

  /// Dimensions of buffers, then axes of stages, each followed by the loops of its updates.
  void collect() {
    for (const Buffer& buffer : program_.buffers) {
      first_[buffer.name] = classes_.size();
      for (const int64_t extent : buffer.type.shape) add(extent, buffer.is_constant);
    }
    for (const Stage& stage : program_.stages) {
      first_[stage.name] = classes_.size();
      for (const Axis& axis : stage.axes) add(axis.extent);
      for (const Update& update : stage.updates)
        for (const Axis& axis : update.over) add(axis.extent);
    }
  }

  void tie(const Stage& stage) {
    Variables axes;
    size_t next = first_.at(stage.name);
    for (const Axis& axis : stage.axes) axes[axis.name] = next++;
    if (stage.value.defined()) tie_loads(stage.value, axes);
    for (const Update& update : stage.updates) {
      Variables all = axes;
      for (const Axis& axis : update.over) all[axis.name] = next++;
      for (size_t d = 0; d < update.at.size(); ++d) {
        tie_index(update.at[d], first_.at(stage.name) + d, all);
        tie_loads(update.at[d], all);
      }
      tie_loads(update.value, all);
    }
  }

  void tie_loads(const Term& root, const Variables& variables) {
    for_each_inside(root, [&](const Term& term) {
      if (term->op != TermOp::kLoad) return;
      for (size_t d = 0; d < term->args.size(); ++d)
        tie_index(term->args[d], first_.at(term->name) + d, variables);
    });
  }

  void tie_index(const Term& index, size_t dim, const Variables& variables) {
    if (index->op == TermOp::kVar) {
      unite(dim, variables.at(index->name));
      return;
    }
    fix(dim);
    for_each_inside(index, [&](const Term& term) {
      if (term->op == TermOp::kVar) fix(variables.at(term->name));
    });
  }

  bool is_taken(const std::string& name) const {
    for (const Stage& stage : program_.stages) {
      const auto has = [&](const std::vector<Axis>& axes) {
        return std::any_of(axes.begin(), axes.end(),
                           [&](const Axis& axis) { return axis.name == name; });
      };
      if (has(stage.axes)) return true;
      for (const Update& update : stage.updates)
        if (has(update.over)) return true;
    }
    return program_.find_buffer(name) != nullptr || program_.find_stage(name) != nullptr;
  }

  /// Axes of one element that nothing is read along: that a reduced dimension leaves behind.
  void fix_ones() {
    std::unordered_map<size_t, int> members;
    for (size_t at = 0; at < classes_.size(); ++at) ++members[root(at)];
    for (size_t at = 0; at < classes_.size(); ++at)
      if (classes_[at].extent == 1 && members[root(at)] == 1) fix(at);
  }

  /// In the order of the first dimension or axis of each.
  void name_symbols() {
    fix_ones();
    for (size_t at = 0; at < classes_.size(); ++at) {
      Class& group = classes_[root(at)];
      if (group.fixed || group.symbol >= 0) continue;
      std::string name = "n" + std::to_string(program_.symbols.size());
      while (is_taken(name)) name += "_";
      group.symbol = static_cast<int>(program_.symbols.size());
      values_[name] = group.extent;
      program_.symbols.push_back({name, kSomeExtent});
    }
  }

  /// The extent over symbols; undefined for a number.
  Term size_of(size_t at, int64_t& extent) {
    const int symbol = classes_[root(at)].symbol;
    if (symbol < 0) return {};
    extent = kSomeExtent;
    return var(program_.symbols[static_cast<size_t>(symbol)].name);
  }

  void write_extents() {
    for (Buffer& buffer : program_.buffers) {
      const size_t first = first_.at(buffer.name);
      std::vector<Term> sizes;
      bool any = false;
      for (size_t d = 0; d < buffer.type.shape.size(); ++d) {
        sizes.push_back(size_of(first + d, buffer.type.shape[d]));
        any = any || sizes.back().defined();
      }
      if (any) buffer.sizes = std::move(sizes);
    }
    for (Stage& stage : program_.stages) {
      size_t next = first_.at(stage.name);
      for (Axis& axis : stage.axes) axis.size = size_of(next++, axis.extent);
      for (Update& update : stage.updates) {
        int64_t& count = counts_[&update] = 1;
        for (Axis& axis : update.over) {
          count *= classes_[next].extent;
          axis.size = size_of(next++, axis.extent);
        }
      }
    }
  }

  /// total * (1 / n), where the total is of n elements.
  void follow_counts(Stage& stage) {
    stage.value = rewrite(stage.value, [&](const Term& term) {
      if (term->op != TermOp::kMultiply || !is_float(term.dtype())) return term;
      for (size_t i = 0; i < 2; ++i) {
        const Term &total = term->args[i], &factor = term->args[1 - i];
        if (total->op != TermOp::kLoad || factor->op != TermOp::kConstant) continue;
        const Term count = count_behind(total, factor);
        if (count.defined()) return total * (constant(1, term.dtype()) / cast(term.dtype(), count));
      }
      return term;
    });
  }

  /// Over symbols, the number of elements whose sum is read and whose reciprocal the factor is.
  Term count_behind(const Term& total, const Term& factor) {
    const Stage* read = program_.find_stage(total->name);
    if (read == nullptr || read->updates.size() != 1 || factor.dtype() != DType::kFloat32)
      return {};
    Term size = 1;
    for (const Axis& axis : read->updates[0].over)
      size = size * extent_term(axis.size, axis.extent);
    const auto count = static_cast<float>(counts_.at(&read->updates[0]));
    if (known_integer(size) || static_cast<float>(factor->real) != 1.0f / count) return {};
    return size;
  }

  Program program_;
  Symbols values_;
  std::vector<Class> classes_;
  std::unordered_map<std::string, size_t> first_;      // classes of an array's dimensions
  std::unordered_map<const Update*, int64_t> counts_;  // elements that each update walks over
};

}  // namespace

Result<Generalised> generalise(const Program& program) { return Generaliser(program).run(); }

}  // namespace collage::tensor_program
