#include "dynamic/loops.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/interrupt.h"
#include "dynamic/host/slices.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/staged/control_flow.h"
#include "frontend/onnx/staged/scan_layout.h"
#include "frontend/onnx/tensor_data.h"
#include "ops/strided.h"

namespace collage {

namespace {

// A scalar, or the one element of a list where the body declares its input as such.
template <typename T>
Tensor scalar_for(const ::onnx::ValueInfoProto& input, T value) {
  const Tensor scalar = Tensor::scalar<T>(value);
  const auto& type = input.type().tensor_type();
  return type.has_shape() && type.shape().dim_size() == 1 ? scalar.reshaped({1}) : scalar;
}

// What no iteration gave: of the declared type, with 0 for dimensions that are not declared.
Result<Tensor> empty_stack(const ::onnx::ValueInfoProto& output, int64_t axis) {
  const auto& type = output.type().tensor_type();
  if (type.elem_type() == 0) return unsupported("'{}' has no declared type", output.name());
  Shape shape;
  for (const auto& dim : type.shape().dim())
    shape.push_back(std::max<int64_t>(0, dim.has_dim_value() ? dim.dim_value() : 0));
  const auto rank = static_cast<int64_t>(shape.size()) + 1;
  shape.insert(shape.begin() + TRY(frontend::normal_axis(axis, rank)), 0);
  return Tensor::allocate(TRY(frontend::dtype_from_onnx(type.elem_type())), std::move(shape));
}

Result<Tensor> stack(const std::vector<Tensor>& parts, int64_t axis, bool backwards,
                     const ::onnx::ValueInfoProto& declared) {
  if (parts.empty()) return empty_stack(declared, axis);
  Shape shape = parts[0].shape();
  axis = TRY(frontend::normal_axis(axis, static_cast<int64_t>(shape.size()) + 1));
  shape.insert(shape.begin() + axis, static_cast<int64_t>(parts.size()));
  Tensor result = TRY(Tensor::allocate(parts[0].dtype(), shape));
  Ints strides = dense_strides(shape);
  const int64_t step = strides[static_cast<size_t>(axis)];
  strides.erase(strides.begin() + axis);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].shape() != parts[0].shape() || parts[i].dtype() != parts[0].dtype())
      return bad_model("iterations give {} and {} for '{}'", shape_to_string(parts[0].shape()),
                       shape_to_string(parts[i].shape()), declared.name());
    const size_t at = backwards ? parts.size() - 1 - i : i;
    copy_strided(parts[i].shape(), dtype_size(result.dtype()),
                 {parts[i].raw(), 0, dense_strides(parts[i].shape())},
                 {result.raw(), static_cast<int64_t>(at) * step, strides});
  }
  return result;
}

Result<Tensor> slice(const Tensor& whole, int64_t axis, int64_t index) {
  const Tensor taken = TRY(dynamic::take_slices(whole, axis, {index}));
  Shape shape = whole.shape();
  shape.erase(shape.begin() + axis);
  return taken.reshaped(std::move(shape));
}

}  // namespace

Result<std::vector<Tensor>> run_loop(const ::onnx::GraphProto& body,
                                     const std::vector<Tensor>& inputs, const RunBody& run) {
  if (inputs.size() < 2 || body.input_size() != static_cast<int>(inputs.size()) ||
      body.output_size() < static_cast<int>(inputs.size()) - 1)
    return bad_model("a body of {} inputs and {} outputs for {} inputs", body.input_size(),
                     body.output_size(), inputs.size());
  const bool bounded = inputs[0].defined();
  const int64_t trips = bounded ? TRY(frontend::scalar_value(inputs[0], "the trip count")) : 0;
  bool goes_on =
      !inputs[1].defined() || TRY(frontend::scalar_value(inputs[1], "the condition")) != 0;
  std::vector<Tensor> state(inputs.begin() + 2, inputs.end());
  std::vector<std::vector<Tensor>> stacked(static_cast<size_t>(body.output_size()) - 1 -
                                           state.size());
  for (int64_t trip = 0; goes_on && (!bounded || trip < trips); ++trip) {
    if (interrupted()) return error(ErrorCode::kInternal, "interrupted");
    std::vector<Tensor> given = {scalar_for<int64_t>(body.input(0), trip),
                                 scalar_for<bool>(body.input(1), true)};
    given.insert(given.end(), state.begin(), state.end());
    std::vector<Tensor> outputs = TRY(run(std::move(given)));
    goes_on = TRY(frontend::scalar_value(outputs[0], "the condition")) != 0;
    for (size_t i = 0; i < state.size(); ++i) state[i] = std::move(outputs[i + 1]);
    for (size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(std::move(outputs[state.size() + 1 + i]));
  }
  for (size_t i = 0; i < stacked.size(); ++i)
    state.push_back(TRY(stack(
        stacked[i], 0, false,
        body.output(body.output_size() - static_cast<int>(stacked.size()) + static_cast<int>(i)))));
  return state;
}

Result<std::vector<Tensor>> run_scan(const ::onnx::NodeProto& node, const ::onnx::GraphProto& body,
                                     const std::vector<Tensor>& inputs, const RunBody& run) {
  const frontend::ScanLayout layout = TRY(frontend::ScanLayout::of(node, body));
  if (inputs.size() != layout.carried + layout.scanned)
    return bad_model("{} inputs, not {}", inputs.size(), layout.carried + layout.scanned);
  std::vector<Tensor> state(inputs.begin(),
                            inputs.begin() + static_cast<std::ptrdiff_t>(layout.carried));
  std::vector<Shape> shapes;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < layout.scanned; ++i) {
    shapes.push_back(inputs[layout.carried + i].shape());
    axes.push_back(TRY(layout.input_axis(i, shapes.back())));
  }
  const int64_t length = TRY(layout.length(shapes));
  std::vector<std::vector<Tensor>> stacked(layout.stacked);
  for (int64_t step = 0; step < length; ++step) {
    if (interrupted()) return error(ErrorCode::kInternal, "interrupted");
    std::vector<Tensor> given = state;
    for (size_t i = 0; i < layout.scanned; ++i)
      given.push_back(
          TRY(slice(inputs[layout.carried + i], axes[i], layout.position(i, step, length))));
    std::vector<Tensor> outputs = TRY(run(std::move(given)));
    for (size_t i = 0; i < state.size(); ++i) state[i] = std::move(outputs[i]);
    for (size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(std::move(outputs[state.size() + i]));
  }
  for (size_t i = 0; i < stacked.size(); ++i)
    state.push_back(TRY(stack(stacked[i], layout.output_axis(i), layout.output_backwards(i),
                              body.output(static_cast<int>(layout.carried + i)))));
  return state;
}

}  // namespace collage
