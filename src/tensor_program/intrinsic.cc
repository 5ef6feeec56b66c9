#include "tensor_program/intrinsic.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>

#include "base/check.h"
#include "ops/quantised.h"
#include "tensor_program/pattern_kind.h"
#include "tensor_program/program_text.h"
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
  return nullptr;
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
  if (intrinsic.products() == 2 && !fit_16_bits(program, update.value))
    return wrong("sums of two products are not known to fit 16 bits");
  return {};
}

}  // namespace collage::tensor_program
