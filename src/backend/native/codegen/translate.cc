#include "backend/native/codegen/translate.h"

#include <algorithm>

#include "backend/native/codegen/halide_conversions.h"
#include "backend/native/codegen/halide_math.h"
#include "backend/native/codegen/term_operations.h"
#include "backend/native/codegen/tile_calls.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/integers/pair_products.h"
#include "base/check.h"
#include "tensor_program/magnitude.h"
#include "tensor_program/set_elements.h"
#include "tensor_program/term_walk.h"

namespace collage::native {

namespace tp = tensor_program;
using Halide::Func;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

namespace {

constexpr char kSum[] = "sum";  // the accumulator of a template's anchor

/// The step that tensorises the update; null: none does.
const tp::Primitive* tensorised_by(const tp::Program& program, const tp::Stage& stage, int update) {
  for (const tp::Primitive& p : program.schedule)
    if (p.kind == tp::PrimitiveKind::kTensorise && p.stage == stage.name && p.update == update)
      return &p;
  return nullptr;
}

/// Whether the step is by a user's intrinsic, which is called for each tile.
bool is_called(const tp::Primitive& step) {
  return step.kind == tp::PrimitiveKind::kTensorise && tp::find_intrinsic(step)->call != nullptr;
}

/// Whether an index or the value depends on one of the update's loops.
bool names_loops(const tp::Update& update) {
  return std::any_of(update.over.begin(), update.over.end(), [&](const tp::Axis& loop) {
    return tp::depends_on(update.value, loop.name) ||
           std::any_of(update.at.begin(), update.at.end(),
                       [&](const tp::Term& index) { return tp::depends_on(index, loop.name); });
  });
}

}  // namespace

Translator::Translator(const tp::Program& program, bool whole) : program_(program), whole_(whole) {
  for (const tp::Symbol& symbol : program_.symbols) symbols_.emplace_back(symbol.name);
}

HExpr Translator::extent(const tp::Term& size, int64_t number) {
  if (!size.defined()) return to_int(number);
  Scope none;
  return expr(size, none);
}

std::vector<Halide::Argument> Translator::symbols() const {
  return {symbols_.begin(), symbols_.end()};
}

/// The stage is computed from end to end, whatever part of it is read.
void Translator::bound_by(const tp::Stage& stage, Func& f) {
  for (const tp::Axis& axis : stage.axes)
    f.bound(Var(axis.name), 0, extent(axis.size, axis.extent));
}

const Binding& Translator::buffer(const std::string& name) {
  auto [slot, fresh] = buffers_.try_emplace(name, bindings_.size());
  if (fresh) {
    const tp::Buffer& buffer = *program_.find_buffer(name);
    const Halide::Type type = halide_type(buffer.type.dtype);
    std::vector<HExpr> sizes;
    for (size_t d = 0; d < buffer.sizes.size(); ++d)
      sizes.push_back(extent(buffer.sizes[d], buffer.type.shape[d]));
    bindings_.push_back({sizes.empty() ? BufferArg(name, type, buffer.type.shape)
                                       : BufferArg(name, type, buffer.type.shape, sizes),
                         buffer.param,
                         buffer.value,
                         {},
                         false});
  }
  return bindings_[slot->second];
}

HExpr Translator::loaded(const tp::TermNode& term, std::vector<HExpr> at) {
  HExpr value;
  if (program_.find_buffer(term.name) != nullptr) {
    value = buffer(term.name).buffer(at);
  } else {
    std::reverse(at.begin(), at.end());
    value = func(term.name)(at);
  }
  return term.dtype == DType::kBool && !value.type().is_bool() ? value != 0 : value;
}

HExpr Translator::rounded(const tp::Term& term, Scope& scope) {
  if (vector_width() < 16) return {};
  const auto within = [&](const RoundedWithin& steps) {
    return number_or_larger(to_int(steps.low),
                            number_or_smaller(to_int(steps.high), expr(steps.value, scope)));
  };
  if (const auto quantised = quantised_by(*term.get()))
    return rounded_bits(within(quantised->steps), quantised->added, term->dtype);
  if (const auto steps = rounded_within(term)) return nearest_small(within(*steps));
  return {};
}

HExpr Translator::expr(const tp::Term& term, Scope& scope) {
  if (term->op == tp::TermOp::kVar) {
    const auto found = scope.variables.find(term->name);
    if (found != scope.variables.end()) return found->second;
    for (const Halide::Param<int32_t>& symbol : symbols_)
      if (symbol.name() == term->name) return symbol;
    return Var(term->name);
  }
  if (term->op == tp::TermOp::kConstant) return constant(*term.get());
  if (auto found = scope.memo.find(term.get()); found != scope.memo.end())
    return found->second.second;
  HExpr value = rounded(term, scope);
  if (value.defined()) {
    // Done, without the steps in between.
  } else if (const tp::Term* whole = saturated_by(*term.get())) {
    value = saturated(expr(*whole, scope), term->dtype);
  } else {
    std::vector<HExpr> args;
    const bool was_index = is_index_;
    is_index_ = is_index_ || term->op == tp::TermOp::kLoad;
    for (const tp::Term& arg : term->args) args.push_back(expr(arg, scope));
    is_index_ = was_index;
    if (term->op == tp::TermOp::kLoad) {
      value = loaded(*term.get(), std::move(args));
      // Halide has to be told how large constants get that indices are read from.
      const tp::Buffer* buffer = program_.find_buffer(term->name);
      if (scope.intrinsic != nullptr && buffer != nullptr && buffer->value.defined() &&
          term->dtype == DType::kInt32)
        if (const auto range = tp::range_of_values(buffer->value))
          value = Halide::unsafe_promise_clamped(value, to_int(range->low), to_int(range->high));
    } else if (term->op == tp::TermOp::kCast && scope.intrinsic != nullptr) {
      // Halide's, which finds instructions with these.
      value = Halide::cast(halide_type(term->dtype), args[0]);
    } else {
      // Of indices Halide has to know the bounds.
      if (!is_index_ && scope.intrinsic == nullptr) value = wrapping_operation(*term.get(), args);
      if (!value.defined()) value = operation(*term.get(), args);
    }
  }
  scope.memo[term.get()] = {term, value};
  return value;
}

/// As runtime_hooks.cc reads it.
void Translator::define_external(const tp::Stage& stage, Func& f, const std::vector<Var>& vars) {
  calls_library_ = true;
  std::string text = stage.external.label;
  const auto add_shape = [&](const Shape& shape) {
    text += shape.empty() ? " -" : fmt::format(" {}", fmt::join(shape, "x"));
  };
  std::vector<Halide::ExternFuncArgument> args(1);
  for (const std::string& input : stage.external.inputs) {
    add_shape(program_.type_of(input).shape);
    if (program_.find_buffer(input) != nullptr) {
      args.emplace_back(buffer(input).buffer.param());
    } else {
      args.emplace_back(func(input));
    }
  }
  add_shape(stage.shape());
  args[0] = HExpr(Halide::Internal::StringImm::make(text));
  f.define_extern("collage_call_external" + std::to_string(stage.external.inputs.size()), args,
                  halide_type(stage.dtype), vars);
  bound_by(stage, f);
}

Func Translator::func(const std::string& name) {
  auto found = stages_.find(name);
  if (found == stages_.end()) {
    const tp::Stage* stage = program_.find_stage(name);
    COLLAGE_CHECK(stage != nullptr, "no stage {}", name);
    found = stages_.emplace(name, Translated{Func(stage->name), {}}).first;
    define(*stage, found->second);  // whose updates may read it
  }
  return found->second.func;
}

void Translator::define(const tp::Stage& stage, Translated& made) {
  Func& f = made.func;
  std::vector<Var> vars;
  for (size_t i = stage.axes.size(); i-- > 0;) vars.emplace_back(stage.axes[i].name);
  const auto stored = [&](const HExpr& value) {
    return stage.is_result && stage.dtype == DType::kBool ? Halide::cast<uint8_t>(value) : value;
  };
  Scope pure;
  if (!stage.external.label.empty()) {
    define_external(stage, f, vars);
  } else if (stage.value.defined()) {
    f(vars) = stored(expr(stage.value, pure));
    if (stage.is_result) bound_by(stage, f);
  } else if (stage.updates[0].combine != tp::Combine::kSet) {
    f(vars) = expr(tp::neutral(stage.updates[0].combine, stage.dtype), pure);
  } else {
    const HExpr nothing = stored(expr(tp::zero(stage.dtype), pure));
    f(vars) = tp::sets_all_elements(stage) ? Halide::undef(nothing.type()) : nothing;
  }
  for (size_t number = 0; number < stage.updates.size(); ++number) {
    const tp::Update& update = stage.updates[number];
    Scope scope;
    const tp::Primitive* tensorised = tensorised_by(program_, stage, static_cast<int>(number));
    const bool called = tensorised != nullptr && is_called(*tensorised);
    if (tensorised != nullptr && !called) scope.intrinsic = tp::find_intrinsic(*tensorised);
    auto& walked = made.walked.emplace_back();
    std::vector<tp::Axis> over = update.over;
    if (called)  // whoever is called walks over the terms
      std::erase_if(over, [&](const tp::Axis& axis) {
        return std::count(tensorised->names.begin(), tensorised->names.end() - 1, axis.name) != 0;
      });
    if (!over.empty()) {
      Halide::Region region;
      for (size_t i = over.size(); i-- > 0;)
        region.push_back({0, extent(over[i].size, over[i].extent)});
      const Halide::RDom domain(region);
      for (size_t i = 0; i < over.size(); ++i) {
        const RVar loop = domain[static_cast<int>(over.size() - 1 - i)];
        scope.variables[over[i].name] = loop;
        walked.emplace(over[i].name, loop);
      }
    }
    std::vector<HExpr> at;
    is_index_ = true;
    for (size_t i = update.at.size(); i-- > 0;) at.push_back(expr(update.at[i], scope));
    is_index_ = false;
    if (called) {
      calls_intrinsics_ = true;
      f(at) = tile_call(*this, program_, stage, *tensorised, f(at), scope);
      for (const auto& [axis, points] : tile_of(*tensorised)) f.align_bounds(Var(axis), points);
      continue;
    }
    HExpr value = expr(update.value, scope);
    if (scope.intrinsic != nullptr && scope.intrinsic->lanes_bound) {
      multiplies_pairs_ = true;
      value = pair_product(value);
    }
    if (!made.walked.back().empty() && update.combine != tp::Combine::kSet &&
        !names_loops(update)) {
      // Halide walks over loops that are named alone. The condition always holds, and goes.
      const auto& [name, loop] = *made.walked.back().begin();
      value =
          Halide::select(loop >= 0, value, expr(tp::neutral(update.combine, stage.dtype), pure));
    }
    if (update.combine == tp::Combine::kSet) {
      f(at) = stored(value);
    } else {
      f(at) = combined(update.combine, f(at), value);
    }
  }
}

template <typename Target>
void Translator::apply(Target target, const tp::Primitive& step,
                       std::map<std::string, RVar>* walked, TailStrategy masked) {
  const auto loop = [&](size_t i) -> VarOrRVar {
    if (walked != nullptr)
      if (auto found = walked->find(step.names[i]); found != walked->end()) return found->second;
    return Var(step.names[i]);
  };
  // Parts of a loop over a reduction are such loops too.
  const auto part_of = [&](const VarOrRVar& whole, size_t i) -> VarOrRVar {
    if (whole.is_rvar) walked->emplace(step.names[i], RVar(step.names[i]));
    return loop(i);
  };
  TailStrategy tail = whole_ && step.update < 0 ? TailStrategy::ShiftInwards : TailStrategy::Auto;
  if (step.guarded) tail = TailStrategy::GuardWithIf;
  if (step.masked) tail = masked;
  const int number = to_int(step.number);
  switch (step.kind) {
    case tp::PrimitiveKind::kSplit: {
      const VarOrRVar whole = loop(0);
      target.split(whole, part_of(whole, 1), part_of(whole, 2), extent(step.size, step.number),
                   tail);
      return;
    }
    case tp::PrimitiveKind::kFuse: {
      const VarOrRVar inner = loop(0);
      target.fuse(inner, loop(1), part_of(inner, 2));
      return;
    }
    case tp::PrimitiveKind::kReorder: {
      std::vector<VarOrRVar> order;
      for (size_t i = 0; i < step.names.size(); ++i) order.push_back(loop(i));
      target.reorder(order);
      return;
    }
    case tp::PrimitiveKind::kVectorise:
      if (number == 0) {
        target.vectorize(loop(0));
      } else {
        target.vectorize(loop(0), number, tail);
      }
      return;
    case tp::PrimitiveKind::kTensorise:
      if (is_called(step)) {
        for (const auto& [axis, points] : tile_of(step))
          target.split(Var(axis), Var(axis), Var(tile_loop(step, axis)), points, tail);
        return;
      }
      // Halide finds the instruction for sums within vectors.
      target.atomic().vectorize(loop(1)).vectorize(loop(0), number, tail);
      return;
    case tp::PrimitiveKind::kUnroll:
      target.unroll(loop(0));
      return;
    case tp::PrimitiveKind::kParallel:
      target.parallel(loop(0));
      return;
    case tp::PrimitiveKind::kAllowRaces:
      target.allow_race_conditions();
      return;
    default:
      COLLAGE_CHECK(false, "where a stage is computed is no matter of its updates");
  }
}

const tp::Axis* Translator::masked_axis(const tp::Primitive& step) const {
  if (!step.masked || step.kind != tp::PrimitiveKind::kVectorise) return nullptr;
  for (const tp::Axis& axis : program_.find_stage(step.stage)->axes)
    if (axis.name == step.names[0]) return &axis;
  return nullptr;
}

void Translator::apply_schedule() {
  // Where a masked loop is longer than a vector: its last one is moved back to end with it.
  std::map<std::string, Halide::Stage> long_rows;
  std::map<std::string, std::vector<bool>> scheduled;
  for (auto& [name, made] : stages_) scheduled[name].resize(made.walked.size(), false);
  for (const tp::Primitive& step : program_.schedule) {
    const auto found = stages_.find(step.stage);
    if (found == stages_.end()) continue;
    Translated& made = found->second;
    if (step.update >= 0) {
      const auto i = static_cast<size_t>(step.update);
      scheduled[step.stage][i] = true;
      apply(made.func.update(step.update), step, &made.walked[i]);
      continue;
    }
    // Nothing computes what nothing reads: it has no loops.
    if (tp::is_at_loop(step) && stages_.count(step.names[0]) == 0) continue;
    switch (step.kind) {
      case tp::PrimitiveKind::kComputeRoot:
        made.func.compute_root();
        if (whole_) bound_by(*program_.find_stage(step.stage), made.func);
        break;
      case tp::PrimitiveKind::kComputeAt:
        made.func.compute_at(func(step.names[0]), Var(step.names[1]));
        break;
      case tp::PrimitiveKind::kHoistStorage:
        made.func.hoist_storage(func(step.names[0]), Var(step.names[1]));
        break;
      case tp::PrimitiveKind::kInline:
        made.func.compute_inline();
        break;
      default:
        if (const tp::Axis* axis = masked_axis(step)) {
          const HExpr size = extent(axis->size, axis->extent);
          made.func.bound(Var(axis->name), 0, size);
          long_rows.emplace(step.stage, made.func.specialize(size >= to_int(step.number)));
        }
        if (const auto other = long_rows.find(step.stage); other != long_rows.end())
          apply(other->second, step, nullptr, TailStrategy::ShiftInwards);
        apply(made.func, step, nullptr);
    }
  }
  for (auto& [name, made] : stages_)
    for (size_t i = 0; i < made.walked.size(); ++i)
      if (!scheduled[name][i]) made.func.update(static_cast<int>(i)).unscheduled();
}

tp::Term Reader::coordinate(const HExpr& value) {
  if (const auto known = Halide::Internal::as_const_int(value))
    return tp::integer_constant(*known, DType::kInt32);
  for (size_t i = 0; i < coordinates_.size(); ++i)
    if (coordinates_[i].same_as(value) || Halide::Internal::equal(coordinates_[i], value))
      return tp::var("x" + std::to_string(i));
  const std::string name = "x" + std::to_string(coordinates_.size());
  coordinates_.push_back(value);
  scope_.variables[name] = value;
  return tp::var(name);
}

tp::Term Reader::term(const Expr& node, const Coords& at) {
  tp::Coords coords;
  for (const HExpr& position : at.logical) coords.logical.push_back(coordinate(position));
  if (at.lane.defined()) {
    coords.block = coordinate(at.block);
    coords.lane = coordinate(at.lane);
  }
  return emitter_.value(node, coords);
}

HExpr Reader::value(const Expr& node, const Coords& at) {
  const tp::Term wanted = term(node, at);
  read_.add(wanted);
  return translator_.expr(wanted, scope_);
}

HExpr Reader::value_after(const Expr& accumulator, const HExpr& sum, std::optional<double> bound,
                          const Expr& node, const Coords& at) {
  emitter_.bind(accumulator, [](const tp::Coords&) { return tp::var(kSum, DType::kFloat32); });
  tp::Term wanted = term(node, at);
  if (bound) {
    tp::Magnitudes magnitudes(emitter_.program());
    magnitudes.know(kSum, *bound);
    wanted = magnitudes.simplified(wanted);
  }
  read_.add(wanted);
  Translator::Scope scope{scope_.variables, {}};
  scope.variables[kSum] = sum;
  return translator_.expr(wanted, scope);
}

std::string Reader::key() const {
  tp::ProgramKey key = read_;
  key.add(emitter_.program());
  return key.text();
}

std::optional<double> Reader::magnitude(const Expr& node) {
  tp::Coords at;
  for (size_t d = 0; d < node->tensor_type().shape.size(); ++d)
    at.logical.push_back(tp::var("at" + std::to_string(d)));
  const tp::Term value = emitter_.value(node, at);
  return tp::Magnitudes(emitter_.program()).of(value);
}

}  // namespace collage::native
