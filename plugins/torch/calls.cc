#include "calls.h"

#include <algorithm>
#include <set>
#include <string>

#include "ir/op.h"
#include "ops/reduce.h"

namespace collage::torch_plugin {

namespace {

const std::set<std::string, std::less<>>& unary() {
  static const std::set<std::string, std::less<>> names = {"abs",
                                                           "acos",
                                                           "acosh",
                                                           "asin",
                                                           "asinh",
                                                           "atan",
                                                           "atanh",
                                                           "ceil",
                                                           "clip",
                                                           "cos",
                                                           "cosh",
                                                           "erf",
                                                           "exp",
                                                           "floor",
                                                           "log",
                                                           "negative",
                                                           "nn.elu",
                                                           "nn.gelu",
                                                           "nn.hard_sigmoid",
                                                           "nn.hard_swish",
                                                           "nn.leaky_relu",
                                                           "nn.mish",
                                                           "nn.relu",
                                                           "nn.silu",
                                                           "nn.softplus",
                                                           "reciprocal",
                                                           "round",
                                                           "rsqrt",
                                                           "sigmoid",
                                                           "sin",
                                                           "sinh",
                                                           "sqrt",
                                                           "tan",
                                                           "tanh",
                                                           "trunc"};
  return names;
}
const std::set<std::string, std::less<>>& binary() {
  static const std::set<std::string, std::less<>> names = {
      "add", "divide", "maximum", "minimum", "multiply", "nn.bias_add", "power", "subtract"};
  return names;
}
const std::set<std::string, std::less<>>& anchors() {
  static const std::set<std::string, std::less<>> names = {
      "nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul"};
  return names;
}
const std::set<std::string, std::less<>>& others() {
  static const std::set<std::string, std::less<>> names = {"concatenate",
                                                           "max",
                                                           "mean",
                                                           "min",
                                                           "nn.avg_pool2d",
                                                           "nn.global_avg_pool2d",
                                                           "nn.global_max_pool2d",
                                                           "nn.group_norm",
                                                           "nn.instance_norm",
                                                           "nn.layer_norm",
                                                           "nn.log_softmax",
                                                           "nn.max_pool2d",
                                                           "nn.softmax",
                                                           "sum",
                                                           "transpose"};
  return names;
}

Status check_tensors(const CallNode& call) {
  std::vector<TensorType> types = call.type().leaves();
  for (const Expr& arg : call.args)
    for (TensorType& type : arg->type().leaves()) types.push_back(std::move(type));
  for (const TensorType& type : types) {
    if (type.dtype != DType::kFloat32) return unsupported("torch: a {}", type.to_string());
    if (num_elements(type.shape) == 0) return unsupported("torch: an empty array");
  }
  return {};
}

// ATen pads both ends alike, and poolings by half a window at most.
Status check_padding(const Attrs& attrs, const Ints* window) {
  const Ints& padding = attrs.ints("padding");
  const size_t rank = padding.size() / 2;
  for (size_t d = 0; d < rank; ++d) {
    if (padding[d] != padding[rank + d]) return unsupported("torch: padding of one end");
    if (window != nullptr && 2 * padding[d] > (*window)[d])
      return unsupported("torch: padding of more than half a window");
  }
  return {};
}

Status check_pool(const CallNode& call, bool average) {
  TRY(check_padding(call.attrs, &call.attrs.ints("pool_size")));
  const Ints& dilation = call.attrs.ints("dilation");
  if (average && std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; }))
    return unsupported("torch: an average of elements that lie apart");
  return {};
}

}  // namespace

bool is_anchor(const CallNode& call) { return anchors().count(call.op->name) != 0; }

bool is_elementwise(const CallNode& call) {
  return unary().count(call.op->name) != 0 || binary().count(call.op->name) != 0;
}

bool takes_channels_last(const CallNode& call) {
  const std::string& name = call.op->name;
  return call.tensor_type().shape.size() == 4 &&
         (is_elementwise(call) || name == "nn.conv2d" || name == "concatenate" ||
          name.find("_pool2d") != std::string::npos);
}

Status check_call(const CallNode& call) {
  if (call.op == nullptr) return unsupported("torch: a call of a function");
  const std::string& name = call.op->name;
  if (!is_anchor(call) && !is_elementwise(call) && others().count(name) == 0)
    return unsupported("torch: {}", name);
  TRY(check_tensors(call));
  if (name.starts_with("nn.conv")) return check_padding(call.attrs, nullptr);
  if (name == "nn.max_pool2d") return check_pool(call, false);
  if (name == "nn.avg_pool2d") return check_pool(call, true);
  if (name == "sum" || name == "mean" || name == "max" || name == "min") {
    const Shape& shape = call.args[0]->tensor_type().shape;
    if (TRY(reduced_axes(call.attrs, static_cast<int64_t>(shape.size()))).empty())
      return unsupported("torch: a reduction over no axis");
  }
  return {};
}

}  // namespace collage::torch_plugin
