// Elementwise operators of two tensors of equal element type, with numpy's broadcasting:
// arithmetic, bits, comparisons (to bool) and logic (on bool). Integer arithmetic wraps; a division
// by zero or a negative shift is an error at run time.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace collage {

namespace {

enum class Domain { kNumber, kInteger, kBool, kIntegerOrBool, kAny };

Status check_domain(const TensorType& type, Domain domain) {
  bool is_bool = type.dtype == DType::kBool;
  bool ok = domain == Domain::kAny || (domain == Domain::kNumber && !is_bool) ||
            (domain == Domain::kInteger && is_integer(type.dtype)) ||
            (domain == Domain::kBool && is_bool) ||
            (domain == Domain::kIntegerOrBool && (is_bool || is_integer(type.dtype)));
  if (ok) return {};
  return bad_model("is not defined for {}", dtype_name(type.dtype));
}

OpDef binary_op(std::string name, Domain domain, bool to_bool, ReferenceKernel kernel) {
  OpDef op;
  op.name = std::move(name);
  op.min_args = op.max_args = 2;
  op.kind = FusionKind::kBroadcast;
  op.infer_type = [domain, to_bool](Types args, const Attrs&) -> Result<Type> {
    TensorType a = TRY(tensor_arg(args, 0)), b = TRY(tensor_arg(args, 1));
    TRY(check_domain(a, domain));
    TRY(require_same_dtype(a, b));
    return tensor_result(TRY(broadcast_shapes(a.shape, b.shape)), to_bool ? DType::kBool : a.dtype);
  };
  op.reference = with_halves(std::move(kernel));
  return op;
}

// F is a template over the element type.
template <typename F>
ReferenceKernel number_kernel(F) {
  return [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) -> Status {
    dispatch_number(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
      map_elements2<T, T>(inputs[0], inputs[1], outputs[0], F{});
    });
    return {};
  };
}

template <typename F>
ReferenceKernel bits_kernel(F) {
  return [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) -> Status {
    auto run = [&]<typename T>(Tag<T>) {
      map_elements2<T, T>(inputs[0], inputs[1], outputs[0],
                          [](T a, T b) { return static_cast<T>(F{}(a, b)); });
    };
    if (outputs[0].dtype() == DType::kBool) {
      run(Tag<uint8_t>{});
    } else {
      dispatch_integer(outputs[0].dtype(), run);
    }
    return {};
  };
}

template <typename F>
ReferenceKernel compare_kernel(F) {
  return [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) -> Status {
    dispatch_any(inputs[0].dtype(), [&]<typename T>(Tag<T>) {
      map_elements2<T, uint8_t>(inputs[0], inputs[1], outputs[0],
                                [](T a, T b) { return static_cast<uint8_t>(F{}(a, b)); });
    });
    return {};
  };
}

// A kernel whose right operand must hold no element of integer type for which `bad` holds.
template <typename Bad>
ReferenceKernel guarded(Bad bad, std::string_view what, ReferenceKernel kernel) {
  return [bad, what, kernel = std::move(kernel)](std::span<const Tensor> inputs, const Attrs& attrs,
                                                 std::span<Tensor> outputs) -> Status {
    if (is_integer(inputs[1].dtype()) && outputs[0].size() > 0)
      TRY(dispatch_integer(inputs[1].dtype(), [&]<typename T>(Tag<T>) -> Status {
        for (T value : inputs[1].values<T>())
          if (bad(value)) return bad_model("{}", what);
        return {};
      }));
    return kernel(inputs, attrs, outputs);
  };
}

template <typename T>
T divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a / b;
  else if constexpr (std::is_signed_v<T>)
    return b == -1 ? wrap_subtract(T{0}, a) : static_cast<T>(a / b);
  else
    return static_cast<T>(a / b);
}

template <typename T>
T truncated_mod(T a, T b) {  // the sign of the dividend, as C has it
  if constexpr (std::is_same_v<T, float>) {
    // Exact in double below 2^28 times the divisor: the quotient is not rounded up to the next
    // integer, and that integer times the divisor has 53 bits.
    const double quotient = static_cast<double>(a) / b;
    if (!(std::abs(quotient) < 0x1p28)) return std::fmod(a, b);
    const auto whole = static_cast<int64_t>(quotient);
    return whole == 0 ? a : std::copysign(static_cast<float>(a - whole * double{b}), a);
  } else if constexpr (std::is_floating_point_v<T>)
    return std::fmod(a, b);
  else if constexpr (std::is_signed_v<T>)
    return b == -1 ? T{0} : static_cast<T>(a % b);
  else
    return static_cast<T>(a % b);
}

template <typename T>
T floored_mod(T a, T b) {  // the sign of the divisor, as Python has it
  T rest = truncated_mod(a, b);
  if (rest != T{0} && (rest < T{0}) != (b < T{0})) rest = static_cast<T>(rest + b);
  return rest;
}

template <typename T>
T power(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  } else {
    if (b < T{0}) {  // the reciprocal, truncated
      if (a == T{1}) return T{1};
      if (std::is_signed_v<T> && a == static_cast<T>(-1)) return b % 2 == 0 ? T{1} : a;
      return T{0};
    }
    T result{1};
    for (; b > T{0}; b = static_cast<T>(b / 2)) {
      if (b % 2 != 0) result = wrap_multiply(result, a);
      a = wrap_multiply(a, a);
    }
    return result;
  }
}

template <typename T>
T shift_left(T a, T b) {
  constexpr auto kBits = static_cast<uint64_t>(8 * sizeof(T));
  return static_cast<uint64_t>(b) >= kBits ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << b);
}
template <typename T>
T shift_right(T a, T b) {
  constexpr auto kBits = static_cast<uint64_t>(8 * sizeof(T));
  if (static_cast<uint64_t>(b) >= kBits) return a < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> b);
}

// Shared by maximum and minimum: NaN wins.
template <typename T>
bool is_nan(T value) {
  return value != value;
}

void number(const char* name, ReferenceKernel kernel) {
  register_op(binary_op(name, Domain::kNumber, false, std::move(kernel)));
}
void compare(const char* name, Domain domain, ReferenceKernel kernel) {
  register_op(binary_op(name, domain, true, std::move(kernel)));
}

}  // namespace

void register_binary_ops() {
  number("add", number_kernel([]<typename T>(T a, T b) -> T {
           if constexpr (std::is_integral_v<T>)
             return wrap_add(a, b);
           else
             return a + b;
         }));
  number("subtract", number_kernel([]<typename T>(T a, T b) -> T {
           if constexpr (std::is_integral_v<T>)
             return wrap_subtract(a, b);
           else
             return a - b;
         }));
  number("multiply", number_kernel([]<typename T>(T a, T b) -> T {
           if constexpr (std::is_integral_v<T>)
             return wrap_multiply(a, b);
           else
             return a * b;
         }));
  number("maximum", number_kernel([]<typename T>(T a, T b) { return a > b || is_nan(a) ? a : b; }));
  number("minimum", number_kernel([]<typename T>(T a, T b) { return a < b || is_nan(a) ? a : b; }));
  number("power", number_kernel([]<typename T>(T a, T b) { return power(a, b); }));
  auto zero = [](auto value) { return value == 0; };
  number("divide", guarded(zero, "integer division by zero",
                           number_kernel([]<typename T>(T a, T b) { return divide(a, b); })));
  number("mod", guarded(zero, "integer modulo by zero",
                        number_kernel([]<typename T>(T a, T b) { return truncated_mod(a, b); })));
  number("floor_mod",
         guarded(zero, "integer modulo by zero",
                 number_kernel([]<typename T>(T a, T b) { return floored_mod(a, b); })));

  auto negative = [](auto value) { return value < decltype(value){0}; };
  register_op(
      binary_op("left_shift", Domain::kInteger, false,
                guarded(negative, "shift by a negative amount",
                        bits_kernel([]<typename T>(T a, T b) { return shift_left(a, b); }))));
  register_op(
      binary_op("right_shift", Domain::kInteger, false,
                guarded(negative, "shift by a negative amount",
                        bits_kernel([]<typename T>(T a, T b) { return shift_right(a, b); }))));
  register_op(binary_op("bitwise_and", Domain::kIntegerOrBool, false,
                        bits_kernel([](auto a, auto b) { return a & b; })));
  register_op(binary_op("bitwise_or", Domain::kIntegerOrBool, false,
                        bits_kernel([](auto a, auto b) { return a | b; })));
  register_op(binary_op("bitwise_xor", Domain::kIntegerOrBool, false,
                        bits_kernel([](auto a, auto b) { return a ^ b; })));

  compare("equal", Domain::kAny, compare_kernel([](auto a, auto b) { return a == b; }));
  compare("not_equal", Domain::kAny, compare_kernel([](auto a, auto b) { return a != b; }));
  compare("less", Domain::kNumber, compare_kernel([](auto a, auto b) { return a < b; }));
  compare("less_equal", Domain::kNumber, compare_kernel([](auto a, auto b) { return a <= b; }));
  compare("greater", Domain::kNumber, compare_kernel([](auto a, auto b) { return a > b; }));
  compare("greater_equal", Domain::kNumber, compare_kernel([](auto a, auto b) { return a >= b; }));
  compare("logical_and", Domain::kBool, compare_kernel([](auto a, auto b) { return a && b; }));
  compare("logical_or", Domain::kBool, compare_kernel([](auto a, auto b) { return a || b; }));
  compare("logical_xor", Domain::kBool, compare_kernel([](auto a, auto b) { return !a != !b; }));
}

}  // namespace collage
