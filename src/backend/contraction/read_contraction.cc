#include "backend/contraction/read_contraction.h"

#include <algorithm>
#include <limits>

#include "backend/contraction/read_step.h"
#include "ir/op.h"
#include "ops/resize.h"
#include "ops/window.h"

namespace collage::contraction {
namespace {

constexpr int64_t kFewestGroupInputs = 4;

bool is_convolution(const CallNode& call) { return call.op->name.starts_with("nn.conv"); }
bool is_transposed(const CallNode& call) { return call.op->name.ends_with("_transpose"); }

/// The image that the anchor reads, before pixels are repeated.
const Expr& image_of(const CallNode& anchor) {
  return repeats_of_image(anchor) ? as<CallNode>(anchor.args[0])->args[0] : anchor.args[0];
}

Contraction convolution(const CallNode& call) {
  const Shape& data = image_of(call)->tensor_type().shape;
  const Shape& weight = call.args[1]->tensor_type().shape;
  const Shape& out = call.tensor_type().shape;
  const Window window = known_window(call.attrs, {weight.begin() + 2, weight.end()});
  Contraction c;
  c.images = data[0];
  c.in_channels = data[1];
  c.groups = call.attrs.integer("groups");
  Kernel3d kernel;
  Spatial repeats{1, 1, 1};
  const std::optional<Ints> factors = repeats_of_image(call);
  const size_t skip = 3 - window.rank();
  for (size_t d = 0; d < window.rank(); ++d) {
    c.in[skip + d] = data[d + 2];
    c.out[skip + d] = out[d + 2];
    kernel.extent[skip + d] = window.kernel[d];
    kernel.stride[skip + d] = window.strides[d];
    kernel.dilation[skip + d] = window.dilation[d];
    kernel.pad[skip + d] = window.pad_begin[d];
    if (factors) repeats[skip + d] = (*factors)[d];
  }
  Branch& branch = c.branches.emplace_back();
  branch.out_channels = out[1];
  const int64_t elements = volume(kernel.extent);
  if (is_transposed(call)) {
    c.taps = transposed_taps(kernel);
    branch.column_stride = elements;
    branch.channel_stride = weight[1] * elements;
    branch.group_stride = c.group_inputs() * branch.channel_stride;
  } else {
    c.taps = convolution_taps(kernel, repeats);
    branch.channel_stride = elements;
    branch.column_stride = weight[1] * elements;
    branch.group_stride = branch.out_channels / c.groups * branch.column_stride;
  }
  return c;
}

Contraction product(const CallNode& call) {
  const Shape& result = call.tensor_type().shape;
  Contraction c;
  c.channels_last = true;
  c.in_channels = call.args[0]->tensor_type().shape.back();
  Branch& branch = c.branches.emplace_back();
  branch.out_channels = result.back();
  c.in[2] = c.out[2] = num_elements(result) / branch.out_channels;
  const bool columns_first = call.op->name == "nn.dense" || call.attrs.flag("transpose_b");
  branch.column_stride = columns_first ? c.in_channels : 1;
  branch.channel_stride = columns_first ? 1 : branch.out_channels;
  return c;
}

/// Steps and weights are missing.
Contraction contraction_of(const CallNode& anchor) {
  return is_convolution(anchor) ? convolution(anchor) : product(anchor);
}

/// From the result inwards: the steps, then the anchor.
Result<std::vector<const CallNode*>> chain_to(const Expr& result) {
  std::vector<const CallNode*> calls;
  for (const Expr* at = &result;;) {
    const auto* call = as<CallNode>(*at);
    if (call == nullptr || call->op == nullptr) return unsupported("no convolution or product");
    calls.push_back(call);
    if (check_anchor(*call).ok() || call->args.empty()) break;
    // The running value is the argument that is neither parameter nor constant.
    const auto inner = std::find_if(call->args.begin(), call->args.end(),
                                    [](const Expr& arg) { return arg->kind() == ExprKind::kCall; });
    if (inner == call->args.end()) return check_anchor(*call);
    at = &*inner;
  }
  TRY(check_anchor(*calls.back()));
  return calls;
}

/// Whether it is a 1x1 convolution of whole blocks of channels.
bool can_add(const Extents& c) {
  return !c.channels_last && c.groups == 1 && c.taps.count() == 1 &&
         c.taps.up == Spatial{1, 1, 1} && c.in_channels % kTileDepth == 0;
}
bool can_add(const Extents& a, const Extents& b) {
  return can_add(a) && can_add(b) && a.images == b.images && a.out == b.out;
}

/// What an addend's value or the running one may have gone through: sums along the channels.
bool only_adds_columns(const Step& step) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return step.kind == Step::Kind::kLinear && step.tensor == nullptr && step.low == -kInfinity &&
         step.high == kInfinity;
}

Result<Contraction> read_result(const Function& function, const Expr& result);

/// Adds what `other`, of the running value's type, computes to the contraction, which has gone
/// through `steps`.
Status add_addend(const Function& function, const Expr& other, std::vector<Step>& steps,
                  Contraction& c) {
  if (c.addend) return unsupported("a sum of three contractions");
  Contraction more = TRY(read_result(function, other));
  const auto all_add_columns = [](const std::vector<Step>& list) {
    return std::all_of(list.begin(), list.end(), only_adds_columns);
  };
  Branch &to = c.branches[0], &from = more.branches[0];
  if (more.addend || !can_add(c, more) || from.out_channels != to.out_channels ||
      !all_add_columns(steps) || !all_add_columns(from.steps))
    return unsupported("a sum of two contractions");
  const int64_t first = c.in_channels, second = more.in_channels;
  Tensor weights = Tensor::empty(DType::kFloat32, {to.out_channels, first + second});
  for (int64_t column = 0; column < to.out_channels; ++column) {
    float* row = weights.data<float>() + column * (first + second);
    for (int64_t i = 0; i < first; ++i)
      row[i] = to.weights.data<float>()[column * to.column_stride + i * to.channel_stride];
    for (int64_t i = 0; i < second; ++i)
      row[first + i] =
          from.weights.data<float>()[column * from.column_stride + i * from.channel_stride];
  }
  to.weights = std::move(weights);
  to.column_stride = c.in_channels = first + second;
  to.channel_stride = 1;
  steps.insert(steps.end(), from.steps.begin(), from.steps.end());
  c.addend = Image{more.data, more};
  return {};
}

/// With the one branch that gives `result`.
Result<Contraction> read_result(const Function& function, const Expr& result) {
  const std::vector<const CallNode*> calls = TRY(chain_to(result));
  const CallNode& anchor = *calls.back();
  const auto param_of = [&](const Expr& expr) -> Result<int> {
    const auto found = std::find(function->params.begin(), function->params.end(), expr);
    if (found == function->params.end()) return unsupported("an operand that is computed");
    return static_cast<int>(found - function->params.begin());
  };
  Contraction c = contraction_of(anchor);
  c.data = static_cast<size_t>(TRY(param_of(image_of(anchor))));
  Branch& branch = c.branches[0];
  branch.weights = as<ConstantNode>(anchor.args[1])->value;
  std::vector<Step> steps;
  for (size_t i = calls.size() - 1; i-- > 0;) {
    const CallNode& call = *calls[i];
    const CallNode* running = calls[i + 1];
    const auto arg = std::find_if(call.args.begin(), call.args.end(),
                                  [&](const Expr& e) { return e.get() == running; });
    const Expr* other = call.args.size() == 2 ? &call.args[arg == call.args.begin()] : nullptr;
    if (call.op->name == "add" && (*other)->kind() == ExprKind::kCall &&
        (*other)->type() == running->type()) {
      TRY(add_addend(function, *other, steps, c));
      continue;
    }
    std::optional<Step> step =
        read_step(call, static_cast<size_t>(arg - call.args.begin()), channel_axis(anchor));
    if (!step) return unsupported("{} after {}", call.op->name, anchor.op->name);
    steps.push_back(std::move(*step));
  }
  branch.steps = merged(std::move(steps));
  for (const Step& step : branch.steps)
    branch.step_params.push_back(step.tensor == nullptr ? -1 : TRY(param_of(step.tensor)));
  return c;
}

bool can_branch(const Extents& a, const Extents& b) { return a == b && a.groups == 1; }

}  // namespace

std::optional<Ints> repeats_of_image(const CallNode& anchor) {
  const auto* call = as<CallNode>(anchor.args[0]);
  if (call == nullptr || !is_convolution(anchor) || is_transposed(anchor)) return std::nullopt;
  return repeat_factors(*call);
}

Status check_anchor(const CallNode& call) {
  const bool is_product =
      call.op != nullptr && (call.op->name == "nn.dense" || call.op->name == "nn.matmul" ||
                             call.op->name == "nn.batch_matmul");
  if (call.op == nullptr || (!is_product && !is_convolution(call)))
    return unsupported("no convolution or product");
  for (const Expr& arg : call.args) {
    if (!arg->type().is_tensor() || arg->tensor_type().dtype != DType::kFloat32)
      return unsupported("{} of {}", call.op->name, arg->type().to_string());
    if (num_elements(arg->tensor_type().shape) == 0) return unsupported("an empty tensor");
  }
  if (call.args[1]->kind() != ExprKind::kConstant)
    return unsupported("{} by weights that are computed", call.op->name);
  if (num_elements(call.tensor_type().shape) == 0) return unsupported("an empty result");
  if (!is_product) {
    // Groups lie side by side in one tile, whose rest is zero.
    const int64_t groups = call.attrs.integer("groups"),
                  width = call.args[0]->tensor_type().shape[1] / groups;
    if (groups > 1 && width < kFewestGroupInputs)
      return unsupported("groups of {} channels", width);
    return {};
  }
  if (call.args[0]->tensor_type().shape.size() < 2) return unsupported("a product of a vector");
  if (call.op->name != "nn.dense") {
    // A batch of right matrices is none; leading ones do no harm.
    const Shape& b = call.args[1]->tensor_type().shape;
    if (b.size() < 2 || num_elements(b) != b[b.size() - 1] * b[b.size() - 2])
      return unsupported("a batch of right operands");
    if (call.attrs.flag("transpose_a")) return unsupported("a transposed left operand");
  }
  return {};
}

size_t channel_axis(const CallNode& anchor) {
  return is_convolution(anchor) ? 1 : anchor.tensor_type().shape.size() - 1;
}

bool are_siblings(const CallNode& a, const CallNode& b) {
  return can_branch(contraction_of(a), contraction_of(b));
}

bool are_addends(const CallNode& a, const CallNode& b) {
  return check_anchor(a).ok() && check_anchor(b).ok() &&
         can_add(contraction_of(a), contraction_of(b));
}

Result<Contraction> read_contraction(const Function& function) {
  const auto* tuple = as<TupleNode>(function->body);
  const std::vector<Expr> results = tuple != nullptr ? tuple->fields : std::vector{function->body};
  if (results.empty()) return unsupported("no result");
  Contraction all = TRY(read_result(function, results[0]));
  for (size_t i = 1; i < results.size(); ++i) {
    Contraction next = TRY(read_result(function, results[i]));
    if (all.addend || next.addend || next.data != all.data || !can_branch(all, next))
      return unsupported("results that are no siblings");
    all.branches.push_back(std::move(next.branches[0]));
  }
  return all;
}

}  // namespace collage::contraction
