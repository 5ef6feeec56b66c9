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

/// An int32 in the order of the values, which have 32 bits at most; NaN is the greatest, or least.
template <Combine kind>
Term ordered(const Term& value) {
  if (!is_float(value.dtype())) return cast(DType::kInt32, value);
  // Of a number below zero, and of -0, the bits are the least integer and the magnitude's.
  const Term number = bits(value), least = lowest(DType::kInt32);
  return select(is_nan(value), kind == Combine::kMax ? highest(DType::kInt32) : least,
                select(number < 0, least - number, number));
}

constexpr int kRows = 8;  // that are compared with one another before what is reduced

/// Computes the first or last position of what is greatest or least, where NaN is both. What has 32
/// bits is walked once: value and position are one integer of 64 bits.
template <Combine kind>
Term position_of(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const Ints axes = softmax_axis(call);
  const auto axis = static_cast<size_t>(axes[0]);
  const bool last = call.attrs.flag("select_last_index");
  const auto x = [&](const Coords& c) { return e.value(call.args[0], c); };
  const auto as_is = [](const Term& total) { return total; };
  Coords kept = at;
  if (!call.attrs.flag("keepdims")) {
    kept = {at.logical, {}, {}};
    kept.logical.insert(kept.logical.begin() + axes[0], Term(0));
  }
  const DType dtype = call.args[0]->tensor_type().dtype, result = call.tensor_type().dtype;
  if (dtype_size(dtype) <= 4 && dtype != DType::kUInt32) {
    const bool innermost = axis + 1 == shape.size();
    const int extent = to_int(shape[axis]), rows = !innermost && extent >= 2 * kRows ? kRows : 1;
    const Term values = integer_constant(int64_t{1} << 32, DType::kInt64);
    const bool descends = last != (kind == Combine::kMax);  // towards what is taken of equals
    const auto from_end = [&](const Term& p) { return descends ? extent - 1 - p : p; };
    const auto best_row = [&](const Coords& c) {
      Term value, position;
      for (int row = 0; row < rows; ++row) {
        Coords own = c;
        Term& at_row = own.logical[axis];
        if (rows > 1) at_row = min(at_row * rows + row, extent - 1);
        const Term other = ordered<kind>(x(own));
        if (row == 0) {
          value = other;
          position = at_row;
          continue;
        }
        const Term equal_or = kind == Combine::kMax ? other >= value : other <= value;
        const Term beyond = kind == Combine::kMax ? other > value : other < value;
        position = select(last ? equal_or : beyond, at_row, position);
        value = kind == Combine::kMax ? max(value, other) : min(value, other);
      }
      return cast(DType::kInt64, value) * values + cast(DType::kInt64, from_end(position));
    };
    Shape walked = shape;
    walked[axis] = ceil_div(extent, rows);
    const Stored& found = e.reduce(call, 0, kind, walked, axes, best_row, [&](const Term& total) {
      return from_end(cast(DType::kInt32, total % values));
    });
    return cast(result, Emitter::read_kept(found, axes, kept));
  }
  const Stored& extreme = e.reduce(call, 0, kind, shape, axes, x, as_is);
  const auto position = [&](const Coords& c) {
    const Term value = x(c), other = last ? Term(-1) : Term(to_int(shape[axis]));
    Term found = value == Emitter::read_kept(extreme, axes, c);
    if (is_float(value.dtype())) found = found || is_nan(value);
    return select(found, c.logical[axis], other);
  };
  const Stored& first =
      e.reduce(call, 1, last ? Combine::kMax : Combine::kMin, shape, axes, position, as_is);
  return cast(result, Emitter::read_kept(first, axes, kept));
}

Status check_position(const CallNode& call) {
  return is_ordered(call) ? Status() : check_float_args(call);
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

float real_attribute(const CallNode& call, std::string_view name) {
  return static_cast<float>(call.attrs.real(name));
}

/// 1 / sqrt(mean of square + epsilon) over the trailing axes, kept in the slot.
const Stored& inverse_deviation(Emitter& e, const CallNode& call, int slot,
                                const std::function<Term(const Coords&)>& square) {
  const Shape& shape = arg_shape(call);
  const Ints axes = trailing_axes(call);
  const float count = count_of(shape, axes), epsilon = real_attribute(call, "epsilon");
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

/// Of a tensor (n, group, channel of the group, pixel…), which the data are in the same order;
/// instance_norm has a group for each channel.
Term group_norm(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const int64_t groups = call.attrs.has("num_groups") ? call.attrs.integer("num_groups") : shape[1];
  const int per_group = to_int(shape[1] / groups);
  Shape grouped = shape;
  Ints axes;
  if (per_group > 1) {
    grouped[1] = groups;
    grouped.insert(grouped.begin() + 2, per_group);
  }
  for (size_t d = 2; d < grouped.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  const auto x = [&](const Coords& c) {
    if (per_group == 1) return e.value(call.args[0], c);
    Coords own{c.logical, {}, {}};
    own.logical[1] = c.logical[1] * per_group + c.logical[2];
    own.logical.erase(own.logical.begin() + 2);
    return e.value(call.args[0], own);
  };
  Coords in_group = at;
  if (per_group > 1) {
    in_group = {at.logical, {}, {}};
    in_group.logical[1] = at.logical[1] / per_group;
    in_group.logical.insert(in_group.logical.begin() + 2, at.logical[1] % per_group);
  }
  const float count = count_of(grouped, axes), epsilon = real_attribute(call, "epsilon");
  const Stored& mean = e.reduce(call, 0, Combine::kSum, grouped, axes, x,
                                [=](const Term& v) { return v * (1.0f / count); });
  const auto square = [&](const Coords& c) {
    const Term d = x(c) - Emitter::read_kept(mean, axes, c);
    return d * d;
  };
  const Stored& scale = e.reduce(call, 1, Combine::kSum, grouped, axes, square, [=](const Term& v) {
    return 1.0f / sqrt(v * (1.0f / count) + epsilon);
  });
  const auto of_channel = [&](size_t i) {
    return e.value(call.args[i], Coords{{at.logical[1]}, {}, {}});
  };
  return (e.value(call.args[0], at) - Emitter::read_kept(mean, axes, in_group)) *
             (Emitter::read_kept(scale, axes, in_group) * of_channel(1)) +
         of_channel(2);
}

Ints pixel_axes(const CallNode& call) {
  Ints axes;
  for (size_t d = 2; d < arg_shape(call).size(); ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

Status check_group_norm(const CallNode& call) {
  if (arg_shape(call).size() < 3) return unsupported("{} without pixels", call.op->name);
  return check_float_args(call);
}

Ints l2_axes(const CallNode& call) {
  const auto rank = static_cast<int64_t>(arg_shape(call).size());
  Ints axes = checked_axes(call.attrs.ints("axis"), rank).value();
  for (int64_t d = 0; call.attrs.ints("axis").empty() && d < rank; ++d) axes.push_back(d);
  return axes;
}

Term l2_normalize(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Ints axes = l2_axes(call);
  const float least = real_attribute(call, "eps");
  const auto square = [&](const Coords& c) {
    const Term x = e.value(call.args[0], c);
    return x * x;
  };
  const Stored& scale = e.reduce(call, 0, Combine::kSum, arg_shape(call), axes, square,
                                 [=](const Term& v) { return 1.0f / sqrt(max(v, least)); });
  return e.value(call.args[0], at) * Emitter::read_kept(scale, axes, at);
}

}  // namespace

void add_reduction_rules(EmitTable& table) {
  const auto add = [&](const char* name, auto check, auto emit, Ints (*reduces)(const CallNode&)) {
    table[name] = {.check = check, .emit = emit, .reduces = reduces};
  };
  add("sum", check_reduction, reduction<Combine::kSum, false>, attribute_axes);
  add("mean", check_reduction, reduction<Combine::kSum, true>, attribute_axes);
  add("prod", check_reduction, reduction<Combine::kProduct, false>, attribute_axes);
  add("max", check_reduction, reduction<Combine::kMax, false>, attribute_axes);
  add("min", check_reduction, reduction<Combine::kMin, false>, attribute_axes);
  add("argmax", check_position, position_of<Combine::kMax>, softmax_axis);
  add("argmin", check_position, position_of<Combine::kMin>, softmax_axis);
  add("nn.softmax", check_float_args, softmax<false>, softmax_axis);
  add("nn.log_softmax", check_float_args, softmax<true>, softmax_axis);
  add("nn.layer_norm", check_float_args, layer_norm, trailing_axes);
  add("nn.rms_norm", check_float_args, rms_norm, trailing_axes);
  add("nn.instance_norm", check_group_norm, group_norm, pixel_axes);
  add("nn.group_norm", check_group_norm, group_norm, nullptr);
  add("nn.l2_normalize", check_float_args, l2_normalize, l2_axes);
}

}  // namespace collage::tensor_program
