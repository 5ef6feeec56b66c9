// Emission of operators that only move elements: each result element is one element of an argument
// (or a constant).
#include <algorithm>

#include "base/check.h"
#include "ops/rearrange.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

int64_t rank_of(const Shape& shape) { return static_cast<int64_t>(shape.size()); }

/// The position in `from` of the element at `at` of `to`, both row-major over equally many
/// elements. Runs of dimensions with equal products are matched, so that what stays a dimension
/// needs no division.
std::vector<Term> reshaped_coords(const Shape& from, const Shape& to, const std::vector<Term>& at) {
  std::vector<Term> result(from.size(), Term(0));
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    size_t i_end = i + 1, j_end = j + 1;
    int64_t a = from[i], b = to[j];
    while (a != b) {
      if (a < b) {
        a *= from[i_end++];
      } else {
        b *= to[j_end++];
      }
    }
    Term flat = at[j];
    for (size_t k = j + 1; k < j_end; ++k)
      flat =
          to[k] == 1 ? flat : (to[k - 1] == 1 && k == j + 1 ? at[k] : flat * to_int(to[k]) + at[k]);
    for (size_t k = i_end; k-- > i;) {
      if (from[k] == 1) continue;
      bool last = true;  // no larger dimension remains in this run
      for (size_t q = i; q < k; ++q) last = last && from[q] == 1;
      result[k] = last ? flat : flat % to_int(from[k]);
      flat = last ? flat : flat / to_int(from[k]);
    }
    i = i_end;
    j = j_end;
  }
  return result;
}

Term reshape(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape &from = arg_shape(call, 0), &to = call.tensor_type().shape;
  Coords source{reshaped_coords(from, to, at.logical), {}, {}};
  if (from.size() >= 2 && to.size() >= 2 && from[0] == to[0] && from[1] == to[1] &&
      at.lane.defined()) {
    source.logical[1] = at.logical[1];
    source.lane = at.lane;
    source.block = at.block;
  }
  return e.value(call.args[0], source);
}

Term transpose(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int64_t rank = rank_of(arg_shape(call, 0));
  Coords source{std::vector<Term>(at.logical.size()), {}, {}};
  for (int64_t d = 0; d < rank; ++d) {
    int64_t axis = rank - 1 - d;
    if (!call.attrs.is_none("axes")) {
      axis = call.attrs.ints("axes")[static_cast<size_t>(d)];
      if (axis < 0) axis += rank;
    }
    source.logical[static_cast<size_t>(axis)] = at.logical[static_cast<size_t>(d)];
  }
  return e.value(call.args[0], source);
}

/// `at` moved by -offset along an axis, its channel lane kept where the offset is whole blocks.
Coords shifted(const Coords& at, size_t axis, int64_t offset, bool clamped, int64_t extent) {
  Coords source = at;
  Term position = at.logical[axis] - to_int(offset);
  if (clamped) position = clamp(position, 0, to_int(extent - 1));
  source.logical[axis] = position;
  if (axis == 1 && at.lane.defined()) {
    if (offset % kChannelBlock == 0 && extent % kChannelBlock == 0) {
      Term block = at.block - to_int(offset / kChannelBlock);
      if (clamped) block = clamp(block, 0, to_int(extent / kChannelBlock - 1));
      source.block = block;
      source.logical[axis] = block * kChannelBlock + at.lane;
    } else {
      source.lane = source.block = {};
    }
  }
  return source;
}

Term concatenate(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const auto axis =
      static_cast<size_t>(normal_axis_of(call, "axis", rank_of(call.tensor_type().shape)));
  const std::vector<Type>& fields = call.args[0]->type().fields();
  Term result;
  int64_t end = call.tensor_type().shape[axis];
  // With whole blocks of channels the choice is one of the block.
  bool whole = axis == 1 && at.lane.defined();
  for (const Type& field : fields) whole = whole && field.tensor().shape[1] % kChannelBlock == 0;
  for (size_t i = fields.size(); i-- > 0;) {
    const int64_t extent = fields[i].tensor().shape[axis], begin = end - extent;
    if (extent == 0) continue;
    const Coords source = shifted(at, axis, begin, true, extent);
    const Term value = as<TupleNode>(call.args[0]) != nullptr
                           ? e.value(as<TupleNode>(call.args[0])->fields[i], source)
                           : e.leaf(call.args[0], i, source);
    if (!result.defined()) {
      result = value;
    } else {
      const Term inside =
          whole ? at.block < to_int(end / kChannelBlock) : at.logical[axis] < to_int(end);
      result = select(inside, value, result);
    }
    end = begin;
  }
  return result;
}

Term stack(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const auto axis =
      static_cast<size_t>(normal_axis_of(call, "axis", rank_of(call.tensor_type().shape)));
  Coords source{at.logical, {}, {}};
  source.logical.erase(source.logical.begin() + static_cast<std::ptrdiff_t>(axis));
  Term result;
  for (size_t i = call.args[0]->type().fields().size(); i-- > 0;) {
    const Term value = as<TupleNode>(call.args[0]) != nullptr
                           ? e.value(as<TupleNode>(call.args[0])->fields[i], source)
                           : e.leaf(call.args[0], i, source);
    result =
        result.defined() ? select(at.logical[axis] == static_cast<int>(i), value, result) : value;
  }
  return result;
}

Term split(Emitter& e, const CallNode& call, size_t leaf, const Coords& at) {
  const Shape& from = arg_shape(call, 0);
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank_of(from)));
  int64_t begin = 0;
  for (size_t i = 0; i < leaf; ++i) begin += call.type().fields()[i].tensor().shape[axis];
  Coords source = at;
  source.logical[axis] = at.logical[axis] + to_int(begin);
  if (axis == 1 && at.lane.defined()) {
    if (begin % kChannelBlock == 0) {
      source.block = at.block + to_int(begin / kChannelBlock);
    } else {
      source.lane = source.block = {};
    }
  }
  return e.value(call.args[0], source);
}

Term strided_slice(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  Coords source = at;
  auto ranges = slice_ranges(arg_shape(call, 0), call.attrs);
  COLLAGE_CHECK(ranges.ok(), "{}", ranges.status().message());
  for (const SliceRange& range : ranges.value()) {
    const auto axis = static_cast<size_t>(range.axis);
    if (range.begin == 0 && range.step == 1) continue;
    source.logical[axis] = at.logical[axis] * to_int(range.step) + to_int(range.begin);
    if (axis == 1 && at.lane.defined()) {
      if (range.step == 1 && range.begin % kChannelBlock == 0) {
        source.block = at.block + to_int(range.begin / kChannelBlock);
      } else {
        source.lane = source.block = {};
      }
    }
  }
  return e.value(call.args[0], source);
}

Term reverse(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call, 0);
  Coords source{at.logical, {}, {}};
  for (int64_t axis : call.attrs.ints("axis")) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + rank_of(shape) : axis);
    source.logical[d] = to_int(shape[d] - 1) - at.logical[d];
  }
  return e.value(call.args[0], source);
}

Term pad(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape& shape = arg_shape(call, 0);
  const IntLists& widths = call.attrs.int_lists("pad_width");
  const std::string& mode = call.attrs.string("pad_mode");
  Coords source = at;
  Term outside = integer_constant(0, DType::kBool);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t before = widths[d][0], after = widths[d][1];
    if (before == 0 && after == 0) continue;
    if (d == 1) source.lane = source.block = {};
    const Term position = at.logical[d] - to_int(before);
    if (mode == "constant" || mode == "edge") {
      if (mode == "constant") {
        if (before > 0) outside = outside || position < 0;
        if (after > 0) outside = outside || position >= to_int(shape[d]);
      }
      source.logical[d] = clamp(position, 0, to_int(shape[d] - 1));
    } else {
      const Ints sources = pad_sources(shape[d], before, after, mode);
      const std::vector<int32_t> table(sources.begin(), sources.end());
      source.logical[d] =
          clamp(e.table_entry(Tensor::from<int32_t>({static_cast<int64_t>(table.size())}, table),
                              at.logical[d]),
                0, to_int(shape[d] - 1));
    }
  }
  const Term value = e.value(call.args[0], source);
  if (is_integer_constant(outside, 0)) return value;
  const Shape& scalar = arg_shape(call, 1);
  return select(outside,
                e.value(call.args[1], Coords{std::vector<Term>(scalar.size(), Term(0)), {}, {}}),
                value);
}

Term broadcast_to(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return e.value(call.args[0], broadcast_coords(arg_shape(call, 0), call.tensor_type().shape, at));
}

Term full(Emitter& e, const CallNode& call, size_t, const Coords&) {
  return e.value(call.args[0],
                 Coords{std::vector<Term>(arg_shape(call, 0).size(), Term(0)), {}, {}});
}

Term tile(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape &from = arg_shape(call, 0), &to = call.tensor_type().shape;
  Coords source;
  const size_t skip = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    source.logical.push_back(from[d] == to[d + skip] ? at.logical[d + skip]
                                                     : at.logical[d + skip] % to_int(from[d]));
  }
  return e.value(call.args[0], source);
}
Status check_tile(const CallNode& call) {
  if (arg_shape(call, 0).size() > call.tensor_type().shape.size())
    return unsupported("tile to fewer dimensions");
  return check_movable_args(call);
}

Term repeat(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank_of(arg_shape(call, 0))));
  Coords source{at.logical, {}, {}};
  source.logical[axis] = at.logical[axis] / to_int(call.attrs.integer("repeats"));
  return e.value(call.args[0], source);
}

Term depth_to_space(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int block = to_int(call.attrs.integer("block_size"));
  const int depth = to_int(call.tensor_type().shape[1]);
  const Term dy = at.logical[2] % block, dx = at.logical[3] % block;
  const Term channel = call.attrs.string("mode") == "CRD"
                           ? (at.logical[1] * block + dy) * block + dx
                           : (dy * block + dx) * depth + at.logical[1];
  return e.value(
      call.args[0],
      Coords{{at.logical[0], channel, at.logical[2] / block, at.logical[3] / block}, {}, {}});
}

Term space_to_depth(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int block = to_int(call.attrs.integer("block_size"));
  const int depth = to_int(arg_shape(call, 0)[1]);
  const Term channel = at.logical[1] % depth, offset = at.logical[1] / depth;
  return e.value(call.args[0],
                 Coords{{at.logical[0], channel, at.logical[2] * block + offset / block,
                         at.logical[3] * block + offset % block},
                        {},
                        {}});
}

Term trilu(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const size_t rank = at.logical.size();
  const Term row = at.logical[rank - 2], column = at.logical[rank - 1];
  const int k = to_int(call.attrs.integer("k"));
  const Term value = e.value(call.args[0], at);
  const Term keep = call.attrs.flag("upper") ? column - row >= k : column - row <= k;
  return select(keep, value, zero(value.dtype()));
}
Status check_trilu(const CallNode& call) {
  if (call.args.size() != 1 || std::abs(call.attrs.integer("k")) > (1 << 30))
    return unsupported("trilu like this");
  return check_movable_args(call);
}

}  // namespace

void add_injective_rules(EmitTable& table) {
  for (std::string_view view : {"reshape", "squeeze", "expand_dims", "nn.batch_flatten"})
    table[std::string(view)] = {check_movable_args, reshape};
  table["transpose"] = {check_movable_args, transpose};
  table["concatenate"] = {check_movable_args, concatenate};
  table["stack"] = {check_movable_args, stack};
  table["split"] = {check_movable_args, split};
  table["strided_slice"] = {check_movable_args, strided_slice};
  table["reverse"] = {check_movable_args, reverse};
  table["nn.pad"] = {check_movable_args, pad};
  table["broadcast_to"] = {check_movable_args, broadcast_to};
  table["full"] = {check_movable_args, full};
  table["tile"] = {check_tile, tile};
  table["repeat"] = {check_movable_args, repeat};
  table["nn.depth_to_space"] = {check_movable_args, depth_to_space};
  table["nn.space_to_depth"] = {check_movable_args, space_to_depth};
  table["trilu"] = {check_trilu, trilu};
}

}  // namespace collage::tensor_program
