// Emission of reductions, softmax and normalisations over axes. Their statistics are stages; in a
// kernel that works row by row (`row_stages`) softmax keeps its exponentials too, instead of
// computing them twice.
#include <algorithm>

#include "ops/reduce.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

Status check_reduction(const CallNode& call) {
  const DType dtype = call.args[0]->tensor_type().dtype;
  const bool moves = call.op->name == "max" || call.op->name == "min";
  if (dtype != DType::kFloat32 && !(moves && is_ordered(call))) {
    return unsupported("{} of {}", call.op->name, call.args[0]->type().to_string());
  }
  return {};
}

Ints attribute_axes(const CallNode& call) {
  return reduced_axes(call.attrs, static_cast<int64_t>(arg_shape(call).size())).value();
}

Ints softmax_axis(const CallNode& call) {
  return {normal_axis_of(call, "axis", static_cast<int64_t>(arg_shape(call).size()))};
}

Ints trailing_axes(const CallNode& call) {
  const auto rank = static_cast<int64_t>(arg_shape(call).size());
  Ints axes;
  for (int64_t d = normal_axis_of(call, "axis", rank); d < rank; ++d) axes.push_back(d);
  return axes;
}

float count_of(const Shape& shape, const Ints& axes) {
  double count = 1;
  for (int64_t axis : axes) count *= static_cast<double>(shape[static_cast<size_t>(axis)]);
  return static_cast<float>(count);
}

template <Combine kind, bool mean>
Term reduction(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const Ints axes = attribute_axes(call);
  const float count = count_of(shape, axes);
  const Stored& stage = e.reduce(
      call, 0, kind, shape, axes, [&](const Coords& c) { return e.value(call.args[0], c); },
      [=](const Term& total) { return mean ? total * (1.0f / count) : total; });
  if (call.attrs.flag("keepdims")) return Emitter::read_kept(stage, axes, at);
  // Coordinates of the reduced tensor, with nothing at the removed axes.
  Coords full;
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool removed = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    full.logical.push_back(removed ? Term(0) : at.logical[next++]);
  }
  return Emitter::read_kept(stage, axes, full);
}

/// 1, and NaN where x is no finite number: what one number alone is a part of itself. Compiled code
/// takes x - x for 0, whatever x is.
Term whole_of(const Term& x) {
  const Term some = 1.0f + abs(x);
  return quotient(some, some);
}

template <bool logarithm>
Term softmax(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const Ints axes = softmax_axis(call);
  const bool is_alone = shape[static_cast<size_t>(axes[0])] == 1;
  auto x = [&](const Coords& c) { return e.value(call.args[0], c); };
  const Stored& largest =
      e.reduce(call, 0, Combine::kMax, shape, axes, x, [](const Term& v) { return v; });
  auto exponential = [&](const Coords& c) {
    return exp(x(c) - Emitter::read_kept(largest, axes, c));
  };
  if (logarithm) {
    const Stored& sum = e.reduce(call, 1, Combine::kSum, shape, axes, exponential,
                                 [](const Term& v) { return log(v); });
    const Term part =
        x(at) - Emitter::read_kept(largest, axes, at) - Emitter::read_kept(sum, axes, at);
    return is_alone ? part + (whole_of(x(at)) - 1.0f) : part;
  }
  const Stored* kept = e.row_stages() ? &e.store(call, 2, shape, exponential) : nullptr;
  auto read = [&](const Coords& c) {
    if (kept == nullptr) return exponential(c);
    return Emitter::read_kept(*kept, {}, {c.logical, {}, {}});
  };
  const Stored& sum =
      e.reduce(call, 1, Combine::kSum, shape, axes, read, [](const Term& v) { return 1.0f / v; });
  const Term part = read(at) * Emitter::read_kept(sum, axes, at);
  return is_alone ? part * whole_of(x(at)) : part;
}

/// gamma and beta have the shape of the normalised dimensions.
Term trailing_arg(Emitter& e, const CallNode& call, size_t i, const Coords& at) {
  const size_t rank = arg_shape(call, i).size();
  return e.value(
      call.args[i],
      Coords{{at.logical.end() - static_cast<std::ptrdiff_t>(rank), at.logical.end()}, {}, {}});
}

/// 1 / sqrt(mean of square + epsilon) over the trailing axes, kept in the slot.
const Stored& inverse_deviation(Emitter& e, const CallNode& call, int slot,
                                const std::function<Term(const Coords&)>& square) {
  const Shape& shape = arg_shape(call);
  const Ints axes = trailing_axes(call);
  const float count = count_of(shape, axes),
              epsilon = static_cast<float>(call.attrs.real("epsilon"));
  return e.reduce(call, slot, Combine::kSum, shape, axes, square,
                  [=](const Term& v) { return 1.0f / sqrt(v * (1.0f / count) + epsilon); });
}

Term layer_norm(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const Ints axes = trailing_axes(call);
  const float count = count_of(shape, axes);
  auto x = [&](const Coords& c) { return e.value(call.args[0], c); };
  const Stored& mean = e.reduce(call, 0, Combine::kSum, shape, axes, x,
                                [=](const Term& v) { return v * (1.0f / count); });
  auto square = [&](const Coords& c) {
    const Term d = x(c) - Emitter::read_kept(mean, axes, c);
    return d * d;
  };
  const Stored& scale = inverse_deviation(e, call, 1, square);
  return (x(at) - Emitter::read_kept(mean, axes, at)) * Emitter::read_kept(scale, axes, at) *
             trailing_arg(e, call, 1, at) +
         trailing_arg(e, call, 2, at);
}

Term rms_norm(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  auto x = [&](const Coords& c) { return e.value(call.args[0], c); };
  auto square = [&](const Coords& c) { return x(c) * x(c); };
  const Stored& scale = inverse_deviation(e, call, 0, square);
  return x(at) * Emitter::read_kept(scale, trailing_axes(call), at) * trailing_arg(e, call, 1, at);
}

}  // namespace

void add_reduction_rules(EmitTable& table) {
  const auto add = [&](const char* name, auto check, auto emit, auto reduces) {
    table[name] = {.check = check, .emit = emit, .reduces = reduces};
  };
  add("sum", check_reduction, reduction<Combine::kSum, false>, attribute_axes);
  add("mean", check_reduction, reduction<Combine::kSum, true>, attribute_axes);
  add("prod", check_reduction, reduction<Combine::kProduct, false>, attribute_axes);
  add("max", check_reduction, reduction<Combine::kMax, false>, attribute_axes);
  add("min", check_reduction, reduction<Combine::kMin, false>, attribute_axes);
  add("nn.softmax", check_float_args, softmax<false>, softmax_axis);
  add("nn.log_softmax", check_float_args, softmax<true>, softmax_axis);
  add("nn.layer_norm", check_float_args, layer_norm, trailing_axes);
  add("nn.rms_norm", check_float_args, rms_norm, trailing_axes);
}

}  // namespace collage::tensor_program
