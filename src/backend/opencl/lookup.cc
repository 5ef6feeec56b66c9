#include "backend/opencl/lookup.h"

namespace collage::opencl {

namespace tp = tensor_program;

bool is_lookup(const CallNode& call) { return call.op->name == "take"; }

Status check_lookup(const CallNode& call) {
  const DType indices = call.args[1]->tensor_type().dtype;
  if (indices != DType::kInt64 && indices != DType::kInt32)
    return unsupported("opencl: indices of {}", dtype_name(indices));
  return tp::check_movable_args(call);
}

tp::Term lookup(tp::Emitter& emitter, const CallNode& call, const tp::Coords& at) {
  const TensorType &data = call.args[0]->tensor_type(), &indices = call.args[1]->tensor_type();
  const auto axis = tp::normal_axis_of(call, "axis", static_cast<int64_t>(data.shape.size()));
  const auto first = at.logical.begin() + axis;
  const auto last = first + static_cast<std::ptrdiff_t>(indices.shape.size());
  const tp::Term index = emitter.value(call.args[1], {{first, last}, {}, {}});
  const int64_t extent = data.shape[static_cast<size_t>(axis)];
  const auto number = [&](int64_t value) { return tp::integer_constant(value, indices.dtype); };
  const tp::Term from_begin = select(index < number(0), index + number(extent), index);
  std::vector<tp::Term> source(at.logical.begin(), first);
  source.push_back(cast(DType::kInt32, min(max(from_begin, number(0)), number(extent - 1))));
  source.insert(source.end(), last, at.logical.end());
  return emitter.value(call.args[0], {std::move(source), {}, {}});
}

}  // namespace collage::opencl
