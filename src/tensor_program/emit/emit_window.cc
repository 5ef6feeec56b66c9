// Emission of pooling, resizing and normalisation over neighbouring channels: each result element
// combines a window of its argument.
#include <algorithm>

#include "ops/resize.h"
#include "ops/window.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

/// Windows with more taps become stages (global pooling) or are refused.
constexpr int64_t kMostTaps = 64;

/// Calls visit with one tap of every dimension, for each way of choosing them; the last dimension
/// changes fastest.
template <typename Tap, typename Visit>
void for_each_choice(const std::vector<std::vector<Tap>>& taps, const Visit& visit) {
  std::vector<size_t> index(taps.size(), 0);
  std::vector<const Tap*> chosen(taps.size());
  for (;;) {
    for (size_t d = 0; d < taps.size(); ++d) chosen[d] = &taps[d][index[d]];
    visit(chosen);
    size_t d = taps.size();
    while (d > 0 && ++index[d - 1] == taps[d - 1].size()) index[--d] = 0;
    if (d == 0) break;
  }
}

/// combine(a, b), or the one of them that is defined.
template <typename Combine>
Term joined(const Term& a, const Term& b, const Combine& combine) {
  return !a.defined() ? b : !b.defined() ? a : combine(a, b);
}

Status check_taps(const CallNode& call) {
  int64_t taps = 1;
  for (int64_t extent : call.attrs.ints("pool_size")) taps *= extent;
  if (taps > kMostTaps) return unsupported("pooling over {} elements", taps);
  return {};
}
Status check_average_pool(const CallNode& call) {
  TRY(check_taps(call));
  return check_float_args(call);
}
/// The largest of numbers is one of them, whatever they are.
Status check_global_max(const CallNode& call) {
  return is_ordered(call) ? Status() : check_float_args(call);
}

/// Whether the largest of a window is that of the largest of its rows, which are fewer.
bool is_separable(const CallNode& call) {
  if (arg_shape(call).size() < 4 || call.tensor_type().dtype != DType::kFloat32) return false;
  const Ints& sizes = call.attrs.ints("pool_size");
  int64_t taps = 1, apart = 0;
  for (const int64_t size : sizes) {
    taps *= size;
    apart += size;
  }
  return taps > 2 * apart && *std::max_element(sizes.begin(), sizes.end()) <= kMostTaps;
}
Status check_max_pool(const CallNode& call) {
  if (!is_separable(call)) TRY(check_taps(call));
  return check_global_max(call);
}

Term pool(Emitter& e, const CallNode& call, const Coords& at, bool average) {
  const Shape &in = arg_shape(call), &out = call.tensor_type().shape;
  const Window w = known_window(call.attrs, call.attrs.ints("pool_size"));
  const size_t rank = w.rank();
  const bool include_pad = average && call.attrs.flag("count_include_pad");
  // Per dimension and tap: position, whether it is inside, whether it counts.
  struct Tap {
    Term position, inside, counts;
  };
  std::vector<std::vector<Tap>> taps(rank);
  double full = 1;
  bool partial = false;  // some window has fewer elements than the kernel
  for (size_t d = 0; d < rank; ++d) {
    full *= static_cast<double>(w.kernel[d]);
    const int64_t last =
        (out[d + 2] - 1) * w.strides[d] - w.pad_begin[d] + (w.kernel[d] - 1) * w.dilation[d];
    for (int64_t k = 0; k < w.kernel[d]; ++k) {
      const Term raw =
          at.logical[d + 2] * to_int(w.strides[d]) + to_int(k * w.dilation[d] - w.pad_begin[d]);
      Tap tap{raw, {}, {}};
      const bool below = w.pad_begin[d] > 0, above = last >= in[d + 2];
      if (below || above) {
        tap.inside = raw >= 0 && raw < to_int(in[d + 2]);
        if (below && !above) tap.inside = raw >= 0;
        if (above && !below) tap.inside = raw < to_int(in[d + 2]);
        tap.position = clamp(likely(raw), 0, to_int(in[d + 2] - 1));
        if (!include_pad) partial = true;
      }
      if (include_pad && last >= in[d + 2] + w.pad_end[d]) {
        tap.counts = raw < to_int(in[d + 2] + w.pad_end[d]);
        partial = true;
      }
      taps[d].push_back(tap);
    }
  }
  const Term nothing = average ? Term(0.0f) : lowest(call.tensor_type().dtype);
  Term total;
  const auto both = [](const Term& a, const Term& b) { return a && b; };
  const auto combined = [&](const Term& a, const Term& b) { return average ? a + b : max(a, b); };
  for_each_choice(taps, [&](const std::vector<const Tap*>& chosen) {
    Coords source = at;
    Term inside;
    for (size_t d = 0; d < rank; ++d) {
      source.logical[d + 2] = chosen[d]->position;
      inside = joined(inside, chosen[d]->inside, both);
    }
    Term value = e.value(call.args[0], source);
    if (inside.defined()) value = select(likely(inside), value, nothing);
    total = joined(total, value, combined);
  });
  if (!average) return total;
  if (!partial) return total * static_cast<float>(1.0 / full);
  // The count of a window is the product of its counts per dimension.
  Term count = 1.0f;
  for (size_t d = 0; d < rank; ++d) {
    Term along = 0.0f;
    bool varies = false;
    for (const Tap& tap : taps[d]) {
      const Term counts = include_pad ? tap.counts : tap.inside;
      varies = varies || counts.defined();
      along = along + (counts.defined() ? select(counts, 1.0f, 0.0f) : Term(1.0f));
    }
    count = count * (varies ? max(along, 1.0f) : Term(static_cast<float>(taps[d].size())));
  }
  return total / count;
}

/// The rows of a tensor with what stands before and behind them.
Access padded_rows(Emitter& e, const CallNode& call, Shape shape, int64_t before, int64_t padded,
                   const Access& value) {
  const Term padding = lowest(call.tensor_type().dtype);
  const int64_t extent = std::min(shape.back(), padded - before), behind = padded - before - extent;
  shape.back() = padded;
  const int slot = to_int(shape.size());
  if (e.joins_by_parts()) {
    const Access pads = [=](const Coords&) { return padding; };
    const std::string rows =
        e.joined_stage(call, slot, shape, {{before, pads}, {extent, value}, {behind, pads}});
    return [=](const Coords& c) { return load(rows, padding.dtype(), c.logical); };
  }
  const Stored& stage = e.store(call, slot, shape, [&](const Coords& c) {
    const Term position = c.logical.back() - to_int(before);
    Coords source = c;
    source.logical.back() = clamp(likely(position), 0, to_int(extent - 1));
    return select(likely(position >= 0 && position < to_int(extent)), value(source), padding);
  });
  return [&stage](const Coords& c) { return Emitter::read_kept(stage, {}, c); };
}

/// The largest of each window's rows, then of these.
Term max_pool_apart(Emitter& e, const CallNode& call, const Coords& at) {
  const Window w = known_window(call.attrs, call.attrs.ints("pool_size"));
  const Shape& out = call.tensor_type().shape;
  const Term nothing = lowest(call.tensor_type().dtype);
  Shape shape = arg_shape(call);
  Access value = [&](const Coords& c) { return e.value(call.args[0], c); };
  for (size_t d = 0; d < w.rank(); ++d) {
    const bool innermost = d + 1 == w.rank();
    const int64_t walked = (out[d + 2] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
    int64_t extent = shape[d + 2], before = w.pad_begin[d];
    if (innermost && !at.lane.defined() && (before > 0 || walked > extent)) {
      value = padded_rows(e, call, shape, before, walked, value);
      extent = walked;
      before = 0;
    }
    const bool below = before > 0, above = walked - before > extent;
    const Access largest = [=, &w](const Coords& c) {
      Term total;
      for (int64_t k = 0; k < w.kernel[d]; ++k) {
        const Term position =
            c.logical[d + 2] * to_int(w.strides[d]) + to_int(k * w.dilation[d] - before);
        Coords source = c;
        source.logical[d + 2] =
            below || above ? clamp(likely(position), 0, to_int(extent - 1)) : position;
        Term element = value(source);
        if (below || above)
          element = select(likely(position >= 0 && position < to_int(extent)), element, nothing);
        total = total.defined() ? max(total, element) : element;
      }
      return total;
    };
    if (innermost) return largest(at);
    shape[d + 2] = out[d + 2];
    const Stored& stage = e.store(call, to_int(d), shape, largest);
    value = [&stage](const Coords& c) { return Emitter::read_kept(stage, {}, c); };
  }
  return value(at);
}

Term max_pool(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return is_separable(call) ? max_pool_apart(e, call, at) : pool(e, call, at, false);
}
Term avg_pool(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return pool(e, call, at, true);
}

Ints image_axes(const CallNode& call) {
  Ints axes;
  for (size_t d = 2; d < arg_shape(call).size(); ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

template <bool average>
Term global_pool(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const Ints axes = image_axes(call);
  double count = 1;
  for (const int64_t d : axes) count *= static_cast<double>(shape[static_cast<size_t>(d)]);
  const Stored& stage = e.reduce(
      call, 0, average ? Combine::kSum : Combine::kMax, shape, axes,
      [&](const Coords& c) { return e.value(call.args[0], c); },
      [&](const Term& total) { return average ? total * static_cast<float>(1.0 / count) : total; });
  return e.read_kept(stage, axes, at);
}

// ---- normalisation over neighbouring channels ----

Status check_lrn(const CallNode& call) {
  if (call.attrs.integer("size") > kMostTaps)
    return unsupported("a sum of {} squares", call.attrs.integer("size"));
  return check_float_args(call);
}

/// Of a number that is not negative; the usual power by square roots.
Term lrn_power(const Term& x, double beta) {
  if (beta == 0.75) return sqrt(x) * sqrt(sqrt(x));
  if (beta == 0.5) return sqrt(x);
  return beta == 1.0 ? x : power(x, static_cast<float>(beta));
}

Term lrn(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call);
  const auto axis =
      static_cast<size_t>(normal_axis_of(call, "axis", static_cast<int64_t>(shape.size())));
  const int64_t size = call.attrs.integer("size"), before = (size - 1) / 2, after = size / 2;
  const int last = to_int(shape[axis] - 1);
  Term squares;
  for (int64_t k = -before; k <= after; ++k) {
    Coords source{at.logical, {}, {}};
    const Term raw = at.logical[axis] + to_int(k);
    if (k != 0) source.logical[axis] = clamp(likely(raw), 0, last);
    const Term x = e.value(call.args[0], source);
    Term square = x * x;
    if (k != 0) square = select(likely(k < 0 ? raw >= 0 : raw <= last), square, 0.0f);
    squares = squares.defined() ? squares + square : square;
  }
  const double alpha = call.attrs.real("alpha"), bias = call.attrs.real("bias");
  const Term sum =
      static_cast<float>(bias) + static_cast<float>(alpha / static_cast<double>(size)) * squares;
  const double beta = call.attrs.real("beta");
  return e.value(call.args[0], at) /
         (alpha >= 0 && bias >= 0 ? lrn_power(sum, beta) : power(sum, static_cast<float>(beta)));
}

// ---- resizing ----

/// Every position has this many taps at most, padded with weight 0.
struct AxisPlan {
  size_t taps = 1;
  int64_t factor = 0;  ///< nearest: source = position / factor
  ResizeAxis axis;
};

Result<std::vector<AxisPlan>> plan_resize(const CallNode& call) {
  const Shape& in = arg_shape(call);
  const size_t spatial = in.size() - 2;
  const bool nearest = call.attrs.string("method") == "nearest_neighbor";
  std::vector<AxisPlan> plans;
  for (size_t d = 0; d < spatial; ++d) {
    AxisPlan plan;
    plan.axis = resize_axis(call.attrs, d, spatial, in[d + 2]);
    for (const auto& taps : plan.axis) {
      if (taps.empty()) return unsupported("a resize that looks outside the image");
      plan.taps = std::max(plan.taps, taps.size());
    }
    const auto out = static_cast<int64_t>(plan.axis.size());
    if (nearest && in[d + 2] > 0 && out % in[d + 2] == 0) {
      plan.factor = out / in[d + 2];
      for (int64_t i = 0; i < out; ++i) {
        if (plan.axis[static_cast<size_t>(i)][0].source != i / plan.factor) plan.factor = 0;
        if (plan.factor == 0) break;
      }
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

Status check_resize(const CallNode& call) {
  TRY(check_float_args(call));
  TRY(plan_resize(call));
  return {};
}

/// The dimensions one after the other, each a stage of sums over its taps.
Term resize_by_stages(Emitter& e, const CallNode& call, const std::vector<AxisPlan>& plans,
                      const Coords& at) {
  using Points = std::vector<Term>;
  Shape shape = arg_shape(call);
  Access value = [&](const Coords& c) { return e.value(call.args[0], c); };
  for (size_t d = 0; d < plans.size(); ++d) {
    const AxisPlan& plan = plans[d];
    if (plan.factor == 1) continue;
    const auto extent = static_cast<int64_t>(plan.axis.size()),
               taps = static_cast<int64_t>(plan.taps);
    const int last = to_int(shape[d + 2] - 1);
    shape[d + 2] = extent;
    const auto element = [&](const Points& points, const Points& over) {
      // Rows of taps; those that a position lacks weigh nothing.
      Tensor sources = Tensor::empty(DType::kInt32, {taps, extent}),
             weights = Tensor::empty(DType::kFloat32, {taps, extent});
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t i = 0; i < extent; ++i) {
          const std::vector<ResizeTap>& own = plan.axis[static_cast<size_t>(i)];
          const auto tap = static_cast<size_t>(t);
          sources.data<int32_t>()[t * extent + i] =
              to_int(own[std::min(tap, own.size() - 1)].source);
          weights.data<float>()[t * extent + i] =
              tap < own.size() ? static_cast<float>(own[tap].weight) : 0.0f;
        }
      const Points entry{over[0], points[d + 2]};
      Coords source{points, {}, {}};
      source.logical[d + 2] =
          clamp(load(e.constant_buffer(std::move(sources)), DType::kInt32, entry), 0, last);
      return value(source) * load(e.constant_buffer(std::move(weights)), DType::kFloat32, entry);
    };
    const std::string stage = e.sum_stage(call, static_cast<int>(d), shape, {taps}, element);
    value = [stage](const Coords& c) { return load(stage, DType::kFloat32, c.logical); };
  }
  return value(at);
}

constexpr size_t kMostInlinedTaps = 4;  // of a dimension

Term resize(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const std::vector<AxisPlan> plans = plan_resize(call).value();
  const size_t spatial = plans.size();
  if (std::any_of(plans.begin(), plans.end(),
                  [](const AxisPlan& plan) { return plan.taps > kMostInlinedTaps; }))
    return resize_by_stages(e, call, plans, at);
  // Per dimension and tap: source and weight (undefined: 1).
  struct Tap {
    Term position, weight;
  };
  std::vector<std::vector<Tap>> taps(spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const AxisPlan& plan = plans[d];
    const Term position = at.logical[d + 2];
    const int last = to_int(arg_shape(call)[d + 2] - 1);
    if (plan.factor > 0) {
      taps[d].push_back({plan.factor == 1 ? position : position / to_int(plan.factor), Term()});
      continue;
    }
    for (size_t t = 0; t < plan.taps; ++t) {
      std::vector<int32_t> sources;
      std::vector<float> weights;
      bool weighted = plan.taps > 1;
      for (const auto& at_position : plan.axis) {
        const bool has = t < at_position.size();
        sources.push_back(has ? to_int(at_position[t].source) : 0);
        weights.push_back(has ? static_cast<float>(at_position[t].weight) : 0.0f);
        weighted = weighted || weights.back() != 1.0f;
      }
      const Shape extent{static_cast<int64_t>(sources.size())};
      const Term source = clamp(e.table_entry(Tensor::from(extent, sources), position), 0, last);
      taps[d].push_back(
          {source, weighted ? e.table_entry(Tensor::from(extent, weights), position) : Term()});
    }
  }
  Term total;
  const auto product = [](const Term& a, const Term& b) { return a * b; };
  for_each_choice(taps, [&](const std::vector<const Tap*>& chosen) {
    Coords source = at;
    Term weight;
    for (size_t d = 0; d < spatial; ++d) {
      source.logical[d + 2] = chosen[d]->position;
      weight = joined(weight, chosen[d]->weight, product);
    }
    const Term value = joined(e.value(call.args[0], source), weight, product);
    total = joined(total, value, [](const Term& a, const Term& b) { return a + b; });
  });
  return total;
}

}  // namespace

void add_window_rules(EmitTable& table) {
  for (const std::string d : {"1d", "2d", "3d"}) {
    table["nn.max_pool" + d] = {check_max_pool, max_pool};
    table["nn.avg_pool" + d] = {check_average_pool, avg_pool};
    table["nn.global_max_pool" + d] = {
        .check = check_global_max, .emit = global_pool<false>, .reduces = image_axes};
    table["nn.global_avg_pool" + d] = {
        .check = check_float_args, .emit = global_pool<true>, .reduces = image_axes};
    table["image.resize" + d] = {check_resize, resize};
  }
  table["nn.lrn"] = {check_lrn, lrn};
}

}  // namespace collage::tensor_program
