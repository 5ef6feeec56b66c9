#include "tensor_program/intrinsic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <random>
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

/// Looks for an intrinsic's value in that of a sum.
class Matcher {
 public:
  Matcher(const Program& program, const std::string& lane, const std::string& term,
          const Intrinsic& intrinsic, int64_t lanes)
      : program_(program), lane_(lane), term_(term), intrinsic_(intrinsic), lanes_(lanes) {
    if (intrinsic.lanes_bound) elements_ = element_ranges(program);
  }

  bool matches(const Term& pattern, const Term& value) const {
    if (pattern->op != value->op || pattern.dtype() != value.dtype()) return false;
    if (pattern->op == TermOp::kLoad) return is_operand(pattern, value);
    if (pattern->args.size() != value->args.size()) return false;
    const auto args_match = [&](bool swapped) {
      for (size_t i = 0; i < pattern->args.size(); ++i)
        if (!matches(pattern->args[i], value->args[swapped ? 1 - i : i])) return false;
      return true;
    };
    return args_match(false) || (pattern->op == TermOp::kMultiply && args_match(true));
  }

 private:
  /// Which block of elements along the lanes it is, such that an instruction's are of one.
  bool is_block(const Term& index) const {
    return index->op == TermOp::kDivide && is_variable(index->args[0], lane_) &&
           known_integer(index->args[1]).value_or(0) > 0 &&
           *known_integer(index->args[1]) % lanes_ == 0;
  }
  bool is_fixed(const Term& index) const {
    if (is_variable(index, lane_) || is_variable(index, term_)) return false;
    return is_block(index) || std::all_of(index->args.begin(), index->args.end(),
                                          [&](const Term& arg) { return is_fixed(arg); });
  }

  /// The terms stand next to one another, from anywhere on.
  bool walks_terms(const Term& index) const {
    if (is_variable(index, term_)) return true;
    if (index->op != TermOp::kAdd) return false;
    const auto is_term_behind = [&](size_t i) {
      return is_variable(index->args[i], term_) && is_fixed(index->args[1 - i]);
    };
    return is_term_behind(0) || is_term_behind(1);
  }

  /// Whether the load walks over memory like that of the intrinsic's operand: A[r] or B[j, r].
  bool is_operand(const Term& operand, const Term& load) const {
    const size_t own = operand->args.size(), all = load->args.size();
    if (all < own || !walks_terms(load->args.back())) return false;
    if (own == 1)
      return std::all_of(load->args.begin(), load->args.end() - 1,
                         [&](const Term& index) { return is_fixed(index); });
    // The lanes are a dimension, or what lies next to one another of blocks of them.
    const Term& at = load->args[all - 2];
    int64_t block = 0;
    if (at->op == TermOp::kModulo && is_variable(at->args[0], lane_))
      block = known_integer(at->args[1]).value_or(0);
    if (!is_variable(at, lane_) && (block == 0 || block % lanes_ != 0)) return false;
    for (size_t d = 0; d + 2 < all; ++d) {
      const Term& index = load->args[d];
      const bool is_that_block =
          block != 0 && is_block(index) && is_integer_constant(index->args[1], block);
      if (depends_on(index, lane_) ? !is_that_block : !is_fixed(index)) return false;
    }
    return is_variable(load->args.back(), term_) &&
           program_.type_of(load->name).shape.back() == intrinsic_.terms() &&
           (!intrinsic_.lanes_bound || intrinsic_.takes_lanes(elements_.at(load->name)));
  }

  const Program& program_;
  const std::string& lane_;
  const std::string& term_;
  const Intrinsic& intrinsic_;
  const int64_t lanes_;
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

constexpr int64_t kGuard = 16;  // sums behind those that are asked for, which stay

/// One symbol, the lanes; a parameter [terms] and one [lanes, terms]; a sum over the terms.
bool is_dot(const Program& program) {
  if (program.symbols.size() != 1 || program.buffers.size() != 2 || program.stages.size() != 1 ||
      !program.schedule.empty())
    return false;
  const Stage& sum = program.stages[0];
  const auto is_lanes = [&](const Term& size) {
    return size.defined() && is_variable(size, program.symbols[0].name);
  };
  if (sum.axes.size() != 1 || !is_lanes(sum.axes[0].size) || sum.value.defined() ||
      sum.updates.size() != 1 || sum.updates[0].over.size() != 1 ||
      sum.updates[0].combine != Combine::kSum ||
      (sum.dtype != DType::kInt32 && sum.dtype != DType::kFloat32))
    return false;
  const Buffer &shared = program.buffers[0], &own = program.buffers[1];
  const int64_t terms = sum.updates[0].over[0].extent;
  return !shared.is_constant && !own.is_constant && shared.type.shape == Shape{terms} &&
         own.type.shape.size() == 2 && own.sizes.size() == 2 && is_lanes(own.sizes[0]) &&
         own.type.shape[1] == terms &&
         std::none_of(shared.sizes.begin(), shared.sizes.end(),
                      [](const Term& size) { return size.defined(); });
}

Tensor random_values(const TensorType& type, uint64_t seed) {
  if (is_float(type.dtype)) return random_tensor(type, seed, {-1, 1});
  Tensor tensor = Tensor::empty(type.dtype, type.shape);
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < tensor.bytes(); ++i)
    static_cast<uint8_t*>(tensor.raw())[i] = static_cast<uint8_t>(random());
  return tensor;
}

template <typename T>
Status compare(const Intrinsic& intrinsic, const Tensor& wanted, const std::vector<T>& before,
               const std::vector<T>& after) {
  for (size_t i = 0; i < before.size(); ++i) {
    const bool is_sum = i < static_cast<size_t>(wanted.size());
    double expected = static_cast<double>(before[i]);
    if (is_sum) {
      if constexpr (std::is_same_v<T, int32_t>)
        expected = static_cast<int32_t>(static_cast<uint32_t>(before[i]) +
                                        static_cast<uint32_t>(wanted.data<int32_t>()[i]));
      else
        expected += static_cast<double>(wanted.data<T>()[i]);
    }
    const double allowed =
        std::is_same_v<T, int32_t> || !is_sum ? 0 : 1e-4 * static_cast<double>(intrinsic.terms());
    if (!(std::abs(static_cast<double>(after[i]) - expected) <= allowed))
      return error(ErrorCode::kVerification,
                   "intrinsic {}: its lowering makes {} of sum {} of {} lanes, its program {}",
                   intrinsic.name, after[i], i, wanted.size(), expected);
  }
  return {};
}

template <typename T>
Status try_lowering(const Intrinsic& intrinsic, int64_t lanes, uint64_t seed) {
  const Program program =
      TRY(with_values(intrinsic.program, {{intrinsic.program.symbols[0].name, lanes}}));
  const std::vector<Tensor> operands = {random_values(program.buffers[0].type, seed),
                                        random_values(program.buffers[1].type, seed + 1)};
  const std::vector<Tensor> wanted = TRY(evaluate(program, operands));
  const auto count = static_cast<size_t>(lanes + kGuard);
  std::vector<T> before(count);
  for (size_t i = 0; i < count; ++i)
    before[i] = static_cast<T>(static_cast<int>(i * 37 % 101) - 50);
  std::vector<T> after = before;
  intrinsic.call(lanes, after.data(), operands[0].raw(), operands[1].raw());
  return compare(intrinsic, wanted[0], before, after);
}

const Intrinsic* find_user_intrinsic(std::string_view name) {
  UserIntrinsics& registered = user_intrinsics();
  const std::lock_guard<std::mutex> lock(registered.mutex);
  for (const Intrinsic& intrinsic : registered.all)
    if (intrinsic.name == name) return &intrinsic;
  return nullptr;
}

Status check_called(const Program& program, const Update& update, const Primitive& step) {
  const std::vector<Axis>& over = update.over;
  const bool has_others = over.size() > 1;
  if (has_others && std::none_of(over.begin(), over.end(), [&](const Axis& axis) {
        return axis.name != step.names[1] && depends_on(update.value, axis.name);
      }))
    return bad_model("its terms depend on none of the other loops");
  for (const Term& load : distinct_loads(update.value)) {
    if (program.find_buffer(load->name) != nullptr || !depends_on(load, step.names[1])) continue;
    const bool is_stored =
        std::any_of(program.schedule.begin(), program.schedule.end(), [&](const Primitive& other) {
          return other.stage == load->name && (other.kind == PrimitiveKind::kComputeRoot ||
                                               other.kind == PrimitiveKind::kComputeAt);
        });
    if (!is_stored)
      return bad_model("{} reads {}, which has to be stored: {}.compute_root()", step.names[2],
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
      declared("dot_uint8x4", R"(program (n = 8) {
        param A: uint8[4];
        param B: int8[n, 4];
        result C[j:n] = sum(r:4) int32(A[r]) * int32(B[j, r]);
      })"),
      declared("dot_uint8x4_twice", R"(program (n = 8) {
        param A: uint8[4];
        param B: int8[n, 4];
        param C: uint8[4];
        param D: int8[n, 4];
        result S[j:n] = sum(r:4) int32(A[r]) * int32(B[j, r]) + int32(C[r]) * int32(D[j, r]);
      })",
               kLargestOf7Bits),
      declared("dot_uint8x4_small", R"(program (n = 8) {
        param A: uint8[4];
        param B: int8[n, 4];
        result C[j:n] = sum(r:4) int32(A[r]) * int32(B[j, r]);
      })",
               kLargestOf7Bits),
      declared("dot_int16x2", R"(program (n = 8) {
        param A: int16[2];
        param B: int16[n, 2];
        result C[j:n] = sum(r:2) int32(A[r]) * int32(B[j, r]);
      })"),
      declared("dot_bfloat16x2", R"(program (n = 8) {
        param A: bfloat16[2];
        param B: bfloat16[n, 2];
        result C[j:n] = sum(r:2) float32(A[r]) * float32(B[j, r]);
      })"),
  };
  return table;
}

const Intrinsic* find_intrinsic(std::string_view name) {
  for (const Intrinsic& intrinsic : intrinsics())
    if (intrinsic.name == name) return &intrinsic;
  return find_user_intrinsic(name);
}

Status register_intrinsic(const std::string& name, std::string_view program, IntrinsicCall call,
                          bool is_local) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
      !std::all_of(name.begin(), name.end(), is_part))
    return usage_error("'{}' is no intrinsic's name", printable(name));
  if (call == nullptr) return usage_error("intrinsic {}: nothing to call", name);
  if (find_intrinsic(name) != nullptr) return usage_error("intrinsic {}: the name is taken", name);
  const Intrinsic made{
      name, TRY(parse_program(program).with_context("intrinsic " + name)), {}, call, is_local};
  if (!is_dot(made.program))
    return bad_model(
        "intrinsic {}: its program is no sum over terms of A[terms] and B[n, terms] "
        "for n lanes, in int32 or float32",
        name);
  for (const int64_t lanes : {1, 4, 8, 16, 24}) {
    const auto seed = static_cast<uint64_t>(lanes);
    TRY(made.stage().dtype == DType::kInt32 ? try_lowering<int32_t>(made, lanes, seed)
                                            : try_lowering<float>(made, lanes, seed));
  }
  UserIntrinsics& registered = user_intrinsics();
  const std::lock_guard<std::mutex> lock(registered.mutex);
  registered.all.push_back(made);
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
    const Intrinsic* intrinsic = find_intrinsic(step.names[2]);
    return intrinsic != nullptr && intrinsic->is_local;
  });
}

Status check_tensorised(const Program& program, const Stage& stage, const Primitive& step,
                        const Intrinsic& intrinsic) {
  const Update& update = stage.updates[static_cast<size_t>(step.update)];
  const std::string &lane = step.names[0], &term = step.names[1];
  const int64_t lanes = step.number;
  const auto wrong = [&](std::string_view why) {
    return bad_model("{} is no {}: {}", stage.name, intrinsic.name, why);
  };
  if (stage.dtype != intrinsic.stage().dtype || update.combine != intrinsic.update().combine ||
      !writes_own_elements(stage, update))
    return wrong("it adds up no elements of its own of that type");
  if (stage.axes.empty() || stage.axes.back().name != lane)
    return wrong("the lanes are its innermost axis");
  if (lanes < 1 || stage.axes.back().extent % lanes != 0)
    return wrong(
        fmt::format("{} lanes do not divide {}:{}", lanes, lane, stage.axes.back().extent));
  const auto over = std::find_if(update.over.begin(), update.over.end(),
                                 [&](const Axis& axis) { return axis.name == term; });
  if (over == update.over.end() || over->extent != intrinsic.terms() || over->size.defined())
    return wrong(fmt::format("it adds {} terms at a time", intrinsic.terms()));
  if (!Matcher(program, lane, term, intrinsic, lanes)
           .matches(intrinsic.update().value, update.value))
    return wrong("it computes something else, or of arrays that lie otherwise");
  if (intrinsic.call != nullptr) TRY(check_called(program, update, step).with_context(stage.name));
  if (intrinsic.products() == 2 && !fit_16_bits(program, update.value))
    return wrong("sums of two products are not known to fit 16 bits");
  return {};
}

}  // namespace collage::tensor_program
