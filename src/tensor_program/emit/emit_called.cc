// Emission of calls of tensor programs (call.h). What is element-wise becomes a part of the term
// that reads it, like the operators of its kind. Any other program's stages become stages of the
// program that is emitted, under names of their own; where they read a parameter they read what
// the call's argument is: a buffer, a stage of another program, or a stage that holds the value of
// the operators in front.
#include <algorithm>

#include "tensor_program/call.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/in_place.h"
#include "tensor_program/pattern_kind.h"
#include "tensor_program/simplify.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {

struct PlacedProgram {
  Program program;  ///< as it is called
  bool inlined = false;
  std::vector<size_t> params;                          ///< for each buffer: which argument it is
  std::unordered_map<std::string, std::string> names;  ///< of arrays, in what is emitted
};

namespace {

constexpr int kDeepest = 1000;  // nesting of what is inlined

/// What the elements of an inlined stage were at some indices.
struct Inlined {
  std::string stage;
  std::vector<Term> at;
  Term value;
};

bool is_elementwise_kind(FusionKind kind) {
  return kind == FusionKind::kElementwise || kind == FusionKind::kBroadcast;
}

/// Whether the sum walks along the innermost dimension of all that it reads, so that its terms are
/// neighbours in memory, and points of the stage are not.
bool sums_along_rows(const Stage& stage, const Update& update) {
  if (update.over.empty()) return false;
  bool along = false, across = false;
  for (const Term& read : distinct_loads(update.value)) {
    if (read->args.empty()) continue;
    along = along || is_variable(read->args.back(), update.over.back().name);
    across =
        across || (!stage.axes.empty() && is_variable(read->args.back(), stage.axes.back().name));
  }
  return along && !across;
}

/// Whether the sum multiplies elements that one axis of the stage shares by elements that another
/// one does: a product of matrices, which is computed several rows and columns at a time.
bool shares_factors(const Stage& stage, const Update& update) {
  std::vector<std::vector<bool>> reads;  // of each load: which axes it depends on
  for (const Term& read : distinct_loads(update.value)) {
    std::vector<bool>& axes = reads.emplace_back();
    for (const Axis& axis : stage.axes) axes.push_back(depends_on(read, axis.name));
  }
  for (const auto& a : reads)
    for (const auto& b : reads)
      for (size_t p = 0; p < stage.axes.size(); ++p)
        for (size_t q = 0; q < stage.axes.size(); ++q)
          if (a[p] && !a[q] && b[q] && !b[p]) return update.combine == Combine::kSum;
  return false;
}

class Placement {
 public:
  Placement(Emitter& emitter, const CallNode& call, PlacedProgram& placed)
      : emitter_(emitter), call_(call), placed_(placed) {}

  void place() {
    place_constants();
    const std::vector<Stage>& stages = placed_.program.stages;
    for (size_t i = 0; i < stages.size(); ++i) place(stages[i], static_cast<int>(i));
  }

  /// An element of an inlined stage.
  Term element(const std::string& name, const std::vector<Term>& at) {
    for (const Inlined& known : inlined_)
      if (known.stage == name && std::equal(at.begin(), at.end(), known.at.begin(), same))
        return known.value;
    const Stage& stage = *placed_.program.find_stage(name);
    Term value = rewritten(stage.value, stage.axes, at);
    inlined_.push_back({name, at, value});
    return value;
  }

  void place_constants() {
    for (const Buffer& buffer : placed_.program.buffers)
      if (buffer.is_constant) placed_.names[buffer.name] = emitter_.constant_buffer(buffer.value);
  }

 private:
  /// Over `at` in place of the axes, and over what the call's arguments are.
  Term rewritten(const Term& term, const std::vector<Axis>& axes, const std::vector<Term>& at) {
    return rewrite(term, [&](const Term& t) {
      if (t->op == TermOp::kVar) {
        for (size_t d = 0; d < axes.size(); ++d)
          if (axes[d].name == t->name) return at[d];
        return t;
      }
      return t->op == TermOp::kLoad ? loaded(*t.get()) : t;
    });
  }

  Term loaded(const TermNode& read) {
    const auto& buffers = placed_.program.buffers;
    const auto buffer = std::find_if(buffers.begin(), buffers.end(),
                                     [&](const Buffer& b) { return b.name == read.name; });
    if (buffer != buffers.end() && !buffer->is_constant)
      return argument(placed_.params[static_cast<size_t>(buffer - buffers.begin())], read.args);
    if (buffer == buffers.end() && placed_.inlined) return element(read.name, read.args);
    return load(placed_.names.at(read.name), read.dtype, read.args);
  }

  Term argument(size_t i, const std::vector<Term>& at) {
    const Expr& arg = call_.args[i];
    const auto value = [&](const Coords& c) { return emitter_.value(arg, c); };
    if (placed_.inlined || !is_computed(arg)) return value({at, {}, {}});
    const Stored& stored =
        emitter_.store(call_, static_cast<int>(i), arg->tensor_type().shape, value);
    return Emitter::read_kept(stored, {}, {at, {}, {}});
  }

  /// Whether the argument is more than an array.
  static bool is_computed(const Expr& arg) {
    if (arg->kind() == ExprKind::kVar || arg->kind() == ExprKind::kConstant) return false;
    const auto* get = as<TupleGetItemNode>(arg);
    const auto* call = as<CallNode>(get != nullptr ? get->tuple : arg);
    return call == nullptr || call->op == nullptr || call->op->name != kCallOp;
  }

  void place(const Stage& stage, int number) {
    const int slot = static_cast<int>(call_.args.size()) + number;
    if (!stage.value.defined() && stage.updates.size() == 1) {
      const Update& update = stage.updates[0];
      if (update.combine != Combine::kSet && writes_own_elements(stage, update) &&
          sums_along_rows(stage, update) && !shares_factors(stage, update)) {
        placed_.names[stage.name] = reduced(stage, update, slot);
        return;
      }
    }
    Stage made;
    made.name = emitter_.stage_name();
    made.dtype = stage.dtype;
    made.axes = numbered_axes("d", stage.shape());
    const std::vector<Term> at = made.indices();
    if (stage.value.defined()) made.value = rewritten(stage.value, stage.axes, at);
    for (const Update& update : stage.updates) {
      std::vector<Axis> axes = stage.axes;
      axes.insert(axes.end(), update.over.begin(), update.over.end());
      std::vector<Term> terms = at;
      Update copy{{}, {}, update.combine, {}};
      for (size_t i = 0; i < update.over.size(); ++i) {
        copy.over.push_back({"r" + std::to_string(i), update.over[i].extent});
        terms.push_back(var(copy.over.back().name));
      }
      for (const Term& index : update.at) copy.at.push_back(rewritten(index, axes, terms));
      copy.value = rewritten(update.value, axes, terms);
      made.updates.push_back(std::move(copy));
    }
    placed_.names[stage.name] = made.name;
    emitter_.program().stages.push_back(std::move(made));
  }

  /// The stage as parts of sums side by side, like the reductions of operators.
  std::string reduced(const Stage& stage, const Update& update, int slot) {
    std::vector<Axis> axes = stage.axes;
    axes.insert(axes.end(), update.over.begin(), update.over.end());
    Shape shape = stage.shape();
    std::vector<int64_t> summed;
    for (const Axis& axis : update.over) {
      summed.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(axis.extent);
    }
    return emitter_
        .reduce(
            call_, slot, update.combine, shape, summed,
            [&](const Coords& c) { return rewritten(update.value, axes, c.logical); },
            [](const Term& total) { return total; })
        .total;
  }

  Emitter& emitter_;
  const CallNode& call_;
  PlacedProgram& placed_;
  std::vector<Inlined> inlined_;
};

Status check_called(const CallNode& call) {
  const Program program = TRY(program_of_call(call));
  int depth = 0;
  for (const Stage& stage : program.stages) {
    if (!stage.external.label.empty())
      return unsupported("a program that calls {}", stage.external.label);
    // Alone, it updates the argument where that lies.
    if (const Buffer* updated = updated_param(program, stage))
      return unsupported("a program that updates {} in place", updated->name);
    const std::vector<std::string> read = loaded_names(stage);
    if (std::find(read.begin(), read.end(), stage.name) != read.end())
      return unsupported("a program whose updates of {} read it", stage.name);
    if (stage.value.defined()) depth += stage.value->depth;
  }
  if (is_elementwise_kind(pattern_kind(program)) && depth > kDeepest)
    return unsupported("an element-wise program of terms that nest {} levels deep", depth);
  return {};
}

Term emit_called(Emitter& e, const CallNode& call, size_t leaf, const Coords& at) {
  std::shared_ptr<PlacedProgram>& placed = e.placed(call);
  const bool fresh = placed == nullptr;
  if (fresh) {
    placed = std::make_shared<PlacedProgram>();
    placed->program = program_of_call(call).value();
    placed->inlined = is_elementwise_kind(pattern_kind(placed->program));
    size_t next = 0;
    for (const Buffer& buffer : placed->program.buffers)
      placed->params.push_back(buffer.is_constant ? 0 : next++);
  }
  const std::shared_ptr<PlacedProgram> program = placed;  // arguments may add others
  Placement placement(e, call, *program);
  const std::string result = program->program.results()[leaf];
  if (program->inlined) {
    if (fresh) placement.place_constants();
    return placement.element(result, at.logical);
  }
  if (fresh) placement.place();
  return load(program->names.at(result), program->program.type_of(result).dtype, at.logical);
}

}  // namespace

bool is_elementwise(const CallNode& call) {
  const EmitRule* rule = call.op != nullptr ? find_emit_rule(call.op->name) : nullptr;
  if (rule == nullptr || rule->elementwise) return rule != nullptr;
  if (call.op->name != kCallOp || !call.type().is_tensor()) return false;
  const Result<Program> program = program_of_call(call);
  return program.ok() && is_elementwise_kind(pattern_kind(*program));
}

void add_called_rules(EmitTable& table) { table[kCallOp] = {check_called, emit_called}; }

}  // namespace collage::tensor_program
