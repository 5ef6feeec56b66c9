#include "tensor_program/intrinsic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <span>

#include "base/check.h"
#include "base/printable.h"
#include "ops/quantised.h"
#include "ops/random_inputs.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/pattern_kind.h"
#include "tensor_program/program_text.h"
#include "tensor_program/symbols.h"
#include "tensor_program/term_walk.h"

namespace collage::tensor_program {
namespace {

Intrinsic declared(std::string name, std::string_view text,
                   std::optional<int64_t> lanes_bound = {}) {
  Result<Program> program = parse_program(text);
  COLLAGE_CHECK(program.ok(), "intrinsic {}: {}", name, program.status().to_string());
  return {std::move(name), *std::move(program), lanes_bound};
}

std::string dot(std::string_view shared, std::string_view own, int terms, std::string_view sum) {
  return fmt::format(
      "program (n = 8) {{ param A: {0}[{2}]; param B: {1}[n, {2}];"
      "result C[j:n] = sum(r:{2}) {3}(A[r]) * {3}(B[j, r]); }}",
      shared, own, terms, sum);
}

/// The loops of a tile, and how many points of each it has.
using Points = std::map<std::string, int64_t>;

/// Of which loop of a tile, if any, it is the block, or the place within it: blocks are of whole
/// tiles.
bool is_of_blocks(const Term& index, TermOp op, const Points& points) {
  if (index->op != op || index->args[0]->op != TermOp::kVar) return false;
  const auto loop = points.find(index->args[0]->name);
  const int64_t block = known_integer(index->args[1]).value_or(0);
  return loop != points.end() && block > 0 && block % loop->second == 0;
}

/// Whether an index is the same all over a tile.
bool is_fixed(const Term& index, const Points& points) {
  if (index->op == TermOp::kVar && points.count(index->name) != 0) return false;
  return is_of_blocks(index, TermOp::kDivide, points) ||
         std::all_of(index->args.begin(), index->args.end(),
                     [&](const Term& arg) { return is_fixed(arg, points); });
}

/// Adds up by how much, `factor` times, an index grows with each loop of a tile; false if it grows
/// otherwise.
bool add_steps(const Term& index, int64_t factor, const Points& points, Points& steps) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (is_fixed(index, points)) return true;
  if (index->op == TermOp::kVar || is_of_blocks(index, TermOp::kModulo, points))
    return (steps[(index->args.empty() ? index : index->args[0])->name] += factor) > 0;
  if (index->op == TermOp::kAdd)
    return add_steps(index->args[0], factor, points, steps) &&
           add_steps(index->args[1], factor, points, steps);
  if (index->op != TermOp::kMultiply) return false;
  for (size_t i = 0; i < 2; ++i)
    if (const int64_t by = known_integer(index->args[i]).value_or(0);
        by > 0 && by <= kMost / factor)
      return add_steps(index->args[1 - i], factor * by, points, steps);
  return false;
}

/// Looks for an intrinsic's value in that of a sum.
class Matcher {
 public:
  /// `own`: the intrinsic's program; `loops`: which loop of the program each of its loops is.
  Matcher(const Program& program, const Program& own, const Intrinsic& intrinsic,
          const std::map<std::string, std::string>& loops, Points own_points)
      : program_(program),
        own_(own),
        intrinsic_(intrinsic),
        loops_(loops),
        own_points_(std::move(own_points)) {
    for (const auto& [mine, loop] : loops) points_[loop] = own_points_.at(mine);
    if (intrinsic.lanes_bound) elements_ = element_ranges(program);
  }

  bool matches(const Term& pattern, const Term& value) {
    if (pattern->op != value->op || pattern.dtype() != value.dtype()) return false;
    if (pattern->op == TermOp::kLoad) return is_operand(pattern, value);
    if (pattern->args.empty()) return pattern->op == TermOp::kConstant && same(pattern, value);
    if (pattern->args.size() != value->args.size()) return false;
    const auto args_match = [&](bool swapped) {
      for (size_t i = 0; i < pattern->args.size(); ++i)
        if (!matches(pattern->args[i], value->args[swapped ? 1 - i : i])) return false;
      return true;
    };
    if (pattern->op != TermOp::kMultiply) return args_match(false);
    const std::map<std::string, Term> before = operands_;
    return args_match(false) || (operands_ = before, args_match(true));
  }

  /// What stands for a parameter of the intrinsic's, once it matches.
  const Term& operand(const std::string& name) const { return operands_.at(name); }

 private:
  bool walks_like(const Term& pattern, const Term& index) const {
    Points own, steps, wanted;
    if (!add_steps(pattern, 1, own_points_, own) || !add_steps(index, 1, points_, steps))
      return false;
    for (const auto& [loop, step] : own) wanted[loops_.at(loop)] = step;
    return steps == wanted;
  }

  /// Whether the load walks over memory like that of the intrinsic's operand: A[r] or B[j, r]. What
  /// a tile's first index selects may lie apart.
  bool is_operand(const Term& operand, const Term& load) {
    const auto [known, is_first] = operands_.try_emplace(operand->name, load);
    if (!is_first) return same(known->second, load);
    const size_t own = operand->args.size(), all = load->args.size();
    const size_t apart = intrinsic_.is_tile() ? 1 : 0;
    if (all < own) return false;
    const Shape& shape = program_.type_of(load->name).shape;
    const Shape& own_shape = own_.type_of(operand->name).shape;
    for (size_t i = 1; i + apart <= own; ++i) {  // from the innermost on
      if (!walks_like(operand->args[own - i], load->args[all - i])) return false;
      if (i + apart < own && shape[all - i] != own_shape[own - i]) return false;
    }
    size_t walking = 0;
    for (size_t d = 0; d < all - own + apart; ++d)
      if (!is_fixed(load->args[d], points_) &&
          (++walking > apart || !walks_like(operand->args[0], load->args[d])))
        return false;
    return walking == apart &&
           (!intrinsic_.lanes_bound || !depends_on(operand, own_.stages[0].axes.back().name) ||
            intrinsic_.takes_lanes(elements_.at(load->name)));
  }

  const Program& program_;
  const Program& own_;
  const Intrinsic& intrinsic_;
  const std::map<std::string, std::string>& loops_;
  const Points own_points_;
  Points points_;
  std::map<std::string, Term> operands_;
  ElementRanges elements_;  ///< where the lanes' are bounded
};

/// Whether the lanes' elements are constants of which two neighbours of both products add up to
/// kLargestSumIn16Bits at most, those of either sign.
bool fit_16_bits(const Program& program, const Term& sum) {
  std::array<Term, 2> loads;
  std::array<const Tensor*, 2> values{};
  for (size_t i = 0; i < 2; ++i) {
    for (const Term& factor : sum->args[i]->args)
      if (factor->op == TermOp::kCast && factor->args[0].dtype() == DType::kInt8)
        loads[i] = factor->args[0];
    if (!loads[i].defined()) return false;
    const Buffer* buffer = program.find_buffer(loads[i]->name);
    if (buffer == nullptr || !buffer->value.defined()) return false;
    values[i] = &buffer->value;
  }
  const auto same_index = [](const Term& a, const Term& b) { return same(a, b); };
  if (values[0]->shape() != values[1]->shape() ||
      !std::equal(loads[0]->args.begin(), loads[0]->args.end(), loads[1]->args.begin(),
                  loads[1]->args.end(), same_index))
    return false;
  const std::span<const int8_t> a = values[0]->values<int8_t>(), b = values[1]->values<int8_t>();
  for (size_t i = 0; i + 1 < a.size(); i += 2) {
    int positive = 0, negative = 0;
    for (const int weight : {a[i], a[i + 1], b[i], b[i + 1]})
      (weight > 0 ? positive : negative) += std::abs(weight);
    if (std::max(positive, negative) > kLargestSumIn16Bits) return false;
  }
  return true;
}

struct UserIntrinsics {
  std::mutex mutex;
  std::deque<Intrinsic> all;  // where they lie stays
};
UserIntrinsics& user_intrinsics() {
  static auto* registered = new UserIntrinsics;
  return *registered;
}

/// A sum of what is read at one place of each of two parameters, the second along the lanes, the
/// first along the rows if there are any. Indices are sums of loops; of a tile, the first is one
/// that no other has.
bool is_sum_of_products(const Program& program) {
  if (program.symbols.size() > 1 || program.buffers.size() != 2 || program.stages.size() != 1 ||
      !program.schedule.empty())
    return false;
  const Stage& sum = program.stages[0];
  if (sum.axes.empty() || sum.axes.size() > 2 || sum.updates.size() != 1 ||
      sum.updates[0].combine != Combine::kSum || !writes_own_elements(sum, sum.updates[0]) ||
      (sum.dtype != DType::kInt32 && sum.dtype != DType::kFloat32))
    return false;
  Points points;
  for (const std::vector<Axis>* loops : {&sum.axes, &sum.updates[0].over})
    for (const Axis& axis : *loops) points[axis.name] = axis.extent;
  const std::vector<Term> loads = distinct_loads(sum.updates[0].value);
  const auto is_operand = [&](const Term& load) {
    const bool by_lane = load->name == program.buffers[1].name, is_tile = sum.axes.size() == 2;
    if (load->name != program.buffers[by_lane].name || program.buffers[by_lane].is_constant)
      return false;
    if (load->args.size() < sum.axes.size() || depends_on(load, sum.axes.back().name) != by_lane ||
        (is_tile && depends_on(load, sum.axes[0].name) == by_lane))
      return false;
    const Term& first = load->args[0];
    Points steps;
    return (!is_tile || first->op == TermOp::kVar) &&
           std::all_of(load->args.begin(), load->args.end(), [&](const Term& index) {
             return (!is_tile || &index == &first || !depends_on(index, first->name)) &&
                    add_steps(index, 1, points, steps);
           });
  };
  return loads.size() == 2 && loads[0]->name != loads[1]->name &&
         std::all_of(loads.begin(), loads.end(), is_operand);
}

constexpr int64_t kGuard = 16;  // sums behind those that are asked for, which stay

Tensor random_values(const TensorType& type, uint64_t seed) {
  const std::optional<Range> all = range_of_type(type.dtype);
  if (!all) return random_tensor(type, seed);
  return random_tensor(type, seed, {static_cast<double>(all->low), static_cast<double>(all->high)});
}

/// The same elements, with `gap` others behind those that each first index selects.
std::vector<char> with_gaps(const Tensor& tensor, int64_t gap) {
  const int64_t rows = tensor.shape()[0];
  const auto row = tensor.bytes() / static_cast<size_t>(rows);
  const size_t apart = row + static_cast<size_t>(gap) * dtype_size(tensor.dtype());
  std::vector<char> spread(apart * static_cast<size_t>(rows), 1);
  for (size_t i = 0; i < static_cast<size_t>(rows); ++i)
    std::memcpy(spread.data() + i * apart, static_cast<const char*>(tensor.raw()) + i * row, row);
  return spread;
}

Status try_lowering(const Intrinsic& intrinsic, int64_t n) {
  const auto seed = static_cast<uint64_t>(n);
  const Program program = TRY(program_for(intrinsic, n));
  const std::vector<Tensor> operands = {random_values(program.buffers[0].type, seed),
                                        random_values(program.buffers[1].type, seed + 1)};
  const Tensor wanted = TRY(evaluate(program, operands))[0];
  const int64_t lanes = wanted.shape().back();
  int64_t rows[] = {lanes + kGuard, 0, 0};
  std::vector<char> spread[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t gap = intrinsic.is_tile() ? 3 + static_cast<int64_t>(i) : 0;
    spread[i] = with_gaps(operands[i], gap);
    rows[i + 1] = operands[i].size() / operands[i].shape()[0] + gap;
  }
  const Tensor before = random_values({{wanted.size() / lanes, rows[0]}, wanted.dtype()}, seed + 2);
  Tensor after = before.clone();
  intrinsic.call(n, after.raw(), spread[0].data(), spread[1].data(), rows);
  const bool is_real = is_float(wanted.dtype());
  const auto number = [&](const Tensor& tensor, int64_t at) -> double {
    if (is_real) return tensor.data<float>()[at];
    return tensor.data<int32_t>()[at];
  };
  for (int64_t i = 0; i < before.size(); ++i) {
    const int64_t lane = i % rows[0];
    double expected = number(before, i);
    if (lane < lanes) expected += number(wanted, i / rows[0] * lanes + lane);
    if (!is_real) expected = static_cast<int32_t>(static_cast<int64_t>(expected));
    const double allowed = is_real && lane < lanes ? 1e-4 * std::max(1.0, std::abs(expected)) : 0;
    if (!(std::abs(number(after, i) - expected) <= allowed))
      return error(ErrorCode::kVerification,
                   "intrinsic {}: its lowering makes {} of sum {} of {}, its program {}",
                   intrinsic.name, number(after, i), lane, lanes, expected);
  }
  return {};
}

Status check_called(const Program& program, const Update& update, const Primitive& step) {
  const auto is_of_tile = [&](const Axis& axis) {
    return std::find(step.names.begin(), step.names.end() - 1, axis.name) != step.names.end() - 1;
  };
  const auto& over = update.over;
  if (!std::all_of(over.begin(), over.end(), is_of_tile) &&
      std::none_of(over.begin(), over.end(), [&](const Axis& axis) {
        return !is_of_tile(axis) && depends_on(update.value, axis.name);
      }))
    return bad_model("its terms depend on none of the other loops");
  for (const Term& load : distinct_loads(update.value)) {
    if (program.find_buffer(load->name) != nullptr ||
        std::none_of(over.begin(), over.end(), [&](const Axis& axis) {
          return is_of_tile(axis) && depends_on(load, axis.name);
        }))
      continue;
    const bool is_stored =
        std::any_of(program.schedule.begin(), program.schedule.end(), [&](const Primitive& other) {
          return other.stage == load->name && (other.kind == PrimitiveKind::kComputeRoot ||
                                               other.kind == PrimitiveKind::kComputeAt);
        });
    if (!is_stored)
      return bad_model("{} reads {}, which has to be stored: {}.compute_root()", step.names.back(),
                       load->name, load->name);
  }
  return {};
}

}  // namespace

bool Intrinsic::takes_lanes(const std::optional<Range>& values) const {
  const std::optional<Range> type = range_of_type(lanes_dtype());
  if (!values || !type) return false;
  const int64_t bound = lanes_bound.value_or(std::numeric_limits<int64_t>::max());
  return values->low >= std::max(type->low, -bound) && values->high <= std::min(type->high, bound);
}

const std::vector<Intrinsic>& intrinsics() {
  static const std::vector<Intrinsic> table = {
      declared("dot_uint8x4", dot("uint8", "int8", 4, "int32")),
      declared("dot_uint8x4_twice", R"(program (n = 8) {
        param A: uint8[4];
        param B: int8[n, 4];
        param C: uint8[4];
        param D: int8[n, 4];
        result S[j:n] = sum(r:4) int32(A[r]) * int32(B[j, r]) + int32(C[r]) * int32(D[j, r]);
      })",
               kLargestOf7Bits),
      declared("dot_uint8x4_small", dot("uint8", "int8", 4, "int32"), kLargestOf7Bits),
      declared("dot_int16x2", dot("int16", "int16", 2, "int32")),
      declared("dot_bfloat16x2", dot("bfloat16", "bfloat16", 2, "float32")),
  };
  return table;
}

const Intrinsic* find_intrinsic(std::string_view name) {
  for (const Intrinsic& intrinsic : intrinsics())
    if (intrinsic.name == name) return &intrinsic;
  UserIntrinsics& registered = user_intrinsics();
  const std::lock_guard<std::mutex> lock(registered.mutex);
  for (const Intrinsic& intrinsic : registered.all)
    if (intrinsic.name == name) return &intrinsic;
  return nullptr;
}

Status register_intrinsic(const std::string& name, std::string_view program, IntrinsicCall call,
                          bool is_local) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
      !std::all_of(name.begin(), name.end(), is_part))
    return usage_error("'{}' is no intrinsic's name", printable(name));
  if (find_intrinsic(name) != nullptr) return usage_error("intrinsic {}: the name is taken", name);
  const Intrinsic made{name, TRY(parse_program(program).with_context("intrinsic " + name)),
                       {},   call,
                       true, is_local};
  if (!is_sum_of_products(made.program))
    return bad_model(
        "intrinsic {}: its program is no sum over terms, in int32 or float32, of A[terms] and "
        "B[n, terms] for n lanes, or of A[i, …] and B[k, j, …] for rows i and lanes j",
        name);
  const int64_t least = made.program.symbols.empty() ? 0 : made.program.symbols[0].value;
  for (const int64_t count : {1, 2, 3, 6}) {
    if (call == nullptr || (least == 0 && count > 1)) break;
    TRY(try_lowering(made, count * least));
  }
  const std::lock_guard<std::mutex> lock(user_intrinsics().mutex);
  user_intrinsics().all.push_back(made);
  return {};
}

bool has_local_intrinsics() {
  UserIntrinsics& registered = user_intrinsics();
  const std::lock_guard<std::mutex> lock(registered.mutex);
  return std::any_of(registered.all.begin(), registered.all.end(),
                     [](const Intrinsic& intrinsic) { return intrinsic.is_local; });
}

bool uses_local_intrinsic(const Program& program) {
  return std::any_of(program.schedule.begin(), program.schedule.end(), [](const Primitive& step) {
    if (step.kind != PrimitiveKind::kTensorise) return false;
    const Intrinsic* intrinsic = find_intrinsic(step);
    return intrinsic != nullptr && intrinsic->is_local;
  });
}

Result<Program> program_for(const Intrinsic& intrinsic, int64_t number) {
  const std::vector<Symbol>& symbols = intrinsic.program.symbols;
  if (symbols.empty() && number == 0) return intrinsic.program;
  const int64_t multiple = symbols.empty() || !intrinsic.is_users ? 1 : symbols[0].value;
  if (symbols.empty() || number < 1 || number % multiple != 0)
    return bad_model("{} is for {}, not {}", intrinsic.name,
                     symbols.empty() ? "no number" : fmt::format("multiples of {}", multiple),
                     number);
  return with_values(intrinsic.program, {{symbols[0].name, number}});
}

Result<std::vector<std::pair<Term, Term>>> match_tensorised(const Program& program,
                                                            const Stage& stage,
                                                            const Primitive& step,
                                                            const Intrinsic& intrinsic) {
  const Update& update = stage.updates[static_cast<size_t>(step.update)];
  const auto wrong = [&](std::string_view why) {
    return bad_model("{} is no {}: {}", stage.name, intrinsic.name, why);
  };
  const Program own = TRY(program_for(intrinsic, step.number));
  const std::vector<Axis>&rows = own.stages[0].axes, &terms = own.stages[0].updates[0].over;
  if (step.names.size() != rows.size() + terms.size() + 1)
    return wrong(fmt::format("it has {} loops", rows.size() + terms.size()));
  if (stage.dtype != intrinsic.stage().dtype || update.combine != intrinsic.update().combine ||
      !writes_own_elements(stage, update))
    return wrong("it adds up no elements of its own of that type");
  std::map<std::string, std::string> loops;
  Points points;
  for (size_t i = 0; i + 1 < step.names.size(); ++i) {
    const bool is_row = i < rows.size();
    const Axis& mine = is_row ? rows[i] : terms[i - rows.size()];
    const std::vector<Axis>& all = is_row ? stage.axes : update.over;
    const auto loop = std::find_if(all.begin(), all.end(),
                                   [&](const Axis& axis) { return axis.name == step.names[i]; });
    if (is_row && (loop == all.end() || (i + 1 == rows.size() && loop + 1 != all.end())))
      return wrong("the lanes are its innermost axis");
    if (is_row && loop->extent % mine.extent != 0)
      return wrong(fmt::format("{} {} do not divide {}:{}", mine.extent,
                               i + 1 == rows.size() ? "lanes" : "rows", loop->name, loop->extent));
    if (!is_row && (loop == all.end() || loop->extent != mine.extent || loop->size.defined()))
      return wrong(fmt::format("it adds {} terms at a time", mine.extent));
    loops[mine.name] = loop->name;
    points[mine.name] = mine.extent;
  }
  if (points.size() != std::set<std::string>(step.names.begin(), step.names.end() - 1).size())
    return wrong("its loops are one another's");
  Matcher matcher(program, own, intrinsic, loops, points);
  if (!matcher.matches(own.stages[0].updates[0].value, update.value))
    return wrong("it computes something else, or of arrays that lie otherwise");
  if (intrinsic.is_users) TRY(check_called(program, update, step).with_context(stage.name));
  if (intrinsic.products() == 2 && !fit_16_bits(program, update.value))
    return wrong("sums of two products are not known to fit 16 bits");
  std::vector<std::pair<Term, Term>> operands;
  const std::vector<Term> loads = distinct_loads(intrinsic.update().value);
  for (const Buffer& buffer : intrinsic.program.buffers)
    for (const Term& load : loads)
      if (load->name == buffer.name) operands.emplace_back(load, matcher.operand(buffer.name));
  return operands;
}

}  // namespace collage::tensor_program
