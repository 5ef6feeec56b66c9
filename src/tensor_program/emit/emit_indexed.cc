// Emission of reading and writing by index: take, gather, gather_nd, scatter_elements, scatter_nd.
// Indices are those that whoever runs the program can check (the reference reports bad ones);
// whatever they are, the program stays inside its arrays.
#include <algorithm>

#include "ops/indices.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

using std::ptrdiff_t;

/// Entry `at` of the call's indices, as a position of an axis of that extent.
Term index_at(Emitter& e, const CallNode& call, int64_t extent, const Coords& at) {
  const int count = to_int(extent), last = to_int(extent - 1);
  Term index = cast(DType::kInt32, e.value(call.args[1], at));
  if (call.args[1]->kind() != ExprKind::kConstant) index = clamp(index, -count, last);
  return clamp(select(index < 0, index + count, index), 0, last);
}

/// Known indices are in range; others come from outside, and all of them are of axes of one extent.
Status check_indexed(const CallNode& call) {
  TRY(check_movable_args(call));
  const std::string& name = call.op->name;
  const Ints extents = index_extents(call);
  if (call.args[1]->kind() != ExprKind::kConstant) {
    const ExprNode* origin = index_origin(call.args[1]);
    if (origin->kind() != ExprKind::kVar)
      return unsupported("{} with indices that are computed", name);
    const DType dtype = origin->type().tensor().dtype;
    if (dtype != DType::kInt32 && dtype != DType::kInt64)
      return unsupported("{} with indices of {}", name, dtype_name(dtype));
    if (std::any_of(extents.begin(), extents.end(), [&](int64_t d) { return d != extents[0]; }))
      return unsupported("{} with indices of several extents", name);
    return {};
  }
  const Tensor& indices = as<ConstantNode>(call.args[1])->value;
  if (indices.size() > 65536) return unsupported("{} with {} indices", name, indices.size());
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t index = indices.element_as_int64(i),
                  extent = extents[static_cast<size_t>(i) % extents.size()];
    if (index < -extent || index >= extent)
      return unsupported("{} with index {} of {}", name, index, extent);
  }
  return {};
}

size_t axis_of(const CallNode& call) {
  return static_cast<size_t>(
      normal_axis_of(call, "axis", static_cast<int64_t>(arg_shape(call).size())));
}

Term take(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape &data = arg_shape(call, 0), &indices = arg_shape(call, 1);
  const size_t axis = axis_of(call);
  const auto first = at.logical.begin() + static_cast<ptrdiff_t>(axis),
             last = first + static_cast<ptrdiff_t>(indices.size());
  Coords source{{at.logical.begin(), first}, {}, {}};
  source.logical.push_back(index_at(e, call, data[axis], {{first, last}, {}, {}}));
  source.logical.insert(source.logical.end(), last, at.logical.end());
  return e.value(call.args[0], source);
}

Term gather(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const size_t axis = axis_of(call);
  Coords source{at.logical, {}, {}};
  source.logical[axis] = index_at(e, call, arg_shape(call)[axis], {at.logical, {}, {}});
  return e.value(call.args[0], source);
}

/// The positions that tuple `at` of the indices names.
std::vector<Term> tuple_at(Emitter& e, const CallNode& call, std::vector<Term> at) {
  std::vector<Term> positions;
  const Ints extents = index_extents(call);
  for (size_t i = 0; i < extents.size(); ++i) {
    Coords entry{at, {}, {}};
    entry.logical.push_back(static_cast<int>(i));
    positions.push_back(index_at(e, call, extents[i], entry));
  }
  return positions;
}

Term gather_nd(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const auto batch = static_cast<ptrdiff_t>(call.attrs.integer("batch_dims"));
  const auto slice = at.logical.begin() + static_cast<ptrdiff_t>(arg_shape(call, 1).size()) - 1;
  Coords source{{at.logical.begin(), at.logical.begin() + batch}, {}, {}};
  for (const Term& position : tuple_at(e, call, {at.logical.begin(), slice}))
    source.logical.push_back(position);
  source.logical.insert(source.logical.end(), slice, at.logical.end());
  return e.value(call.args[0], source);
}

// ---- writing ----

struct Reduction {
  Combine combine;
  bool known;
};
Reduction reduction_of(const CallNode& call) {
  const std::string& name = call.attrs.string(call.op->name == "scatter_nd" ? "mode" : "reduction");
  if (name == "add") return {Combine::kSum, true};
  if (name == "mul") return {Combine::kProduct, true};
  // Of equal numbers either stays, and NaN is above all.
  if (name == "max") return {Combine::kMax, true};
  if (name == "min") return {Combine::kMin, true};
  return {Combine::kSet, name == "update" || name == "none"};
}

Status check_scatter(const CallNode& call) {
  const DType dtype = call.tensor_type().dtype;
  const Reduction reduction = reduction_of(call);
  if (!reduction.known) return unsupported("{} like this", call.op->name);
  if (reduction.combine != Combine::kSet && dtype != DType::kFloat32 && dtype != DType::kInt32 &&
      dtype != DType::kInt64)
    return unsupported("{} of {}", call.op->name, dtype_name(dtype));
  return check_indexed(call);
}

/// A copy of the data, with an update whose loops r0, r1 … are over the tensor of updates but for
/// dimensions that the data have too: those are the stage's own axes.
Term scatter(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape &data = arg_shape(call), &updates = arg_shape(call, 2);
  const bool tuples = call.op->name == "scatter_nd";
  const size_t named = tuples ? index_extents(call).size() : 1;
  const auto copy = [&](const Coords& c) { return e.value(call.args[0], c); };
  return load(e.updated_stage(
                  call, 0, data, copy,
                  [&](const Stage& stage) {
                    Update update{{}, {}, reduction_of(call).combine, {}};
                    std::vector<Term> entry;
                    // How the dimensions of updates and data lie to one another.
                    const size_t outer = tuples ? updates.size() - (data.size() - named) : 0;
                    const size_t axis = tuples ? 0 : axis_of(call);
                    for (size_t d = 0; d < updates.size(); ++d) {
                      const size_t own = tuples ? d - outer + named : d;
                      const bool whole = tuples ? d >= outer : d != axis && updates[d] == data[d];
                      if (!whole) update.over.push_back({"r" + std::to_string(d), updates[d]});
                      entry.push_back(var(whole ? stage.axes[own].name : update.over.back().name));
                    }
                    if (tuples) {
                      update.at = tuple_at(
                          e, call, {entry.begin(), entry.begin() + static_cast<ptrdiff_t>(outer)});
                      update.at.insert(update.at.end(),
                                       entry.begin() + static_cast<ptrdiff_t>(outer), entry.end());
                    } else {
                      update.at = entry;
                      update.at[axis] = index_at(e, call, data[axis], {entry, {}, {}});
                    }
                    update.value = e.value(call.args[2], {entry, {}, {}});
                    return update;
                  }),
              call.tensor_type().dtype, at.logical);
}

}  // namespace

void add_indexed_rules(EmitTable& table) {
  table["take"] = {check_indexed, take};
  table["gather"] = {check_indexed, gather};
  table["gather_nd"] = {check_indexed, gather_nd};
  table["scatter_elements"] = {check_scatter, scatter};
  table["scatter_nd"] = {check_scatter, scatter};
}

}  // namespace collage::tensor_program
