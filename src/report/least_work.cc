#include "report/least_work.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "choose/costing.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/resize.h"
#include "ops/window.h"

namespace collage {

namespace {

using Consumers = std::unordered_map<const ExprNode*, std::vector<Expr>>;

double bytes_of(const TensorType& type) { return static_cast<double>(type.bytes()); }

double bytes_of(const Type& type) {
  double bytes = 0;
  for (const TensorType& leaf : type.leaves()) bytes += bytes_of(leaf);
  return bytes;
}

bool is_quantised(const CallNode& call) {
  return call.op->name.starts_with("qnn.") && !call.op->name.ends_with("quantize");
}
bool is_convolution(const CallNode& call) {
  return call.op->name.starts_with("nn.conv") || call.op->name.starts_with("qnn.conv");
}
bool is_transposed(const CallNode& call) { return call.op->name.ends_with("_transpose"); }

// A convolution's window.
Window window_of(const CallNode& conv) {
  const Shape& weight = conv.args[1]->tensor_type().shape;
  return known_window(conv.attrs, Ints(weight.begin() + 2, weight.end()));
}

// What one dimension of a sliding window over `extent` pixels meets in `positions` steps. Each
// pixel is one of `repeat` equal ones.
struct Met {
  int64_t products = 0;  // distinct pixels, added up over the positions
  int64_t pixels = 0;    // distinct ones in all
};
Met met_along(const Window& window, size_t dim, int64_t extent, int64_t positions, int64_t repeat) {
  Met met;
  std::vector<bool> seen(static_cast<size_t>(extent), false);
  for (int64_t position = 0; position < positions; ++position) {
    int64_t last = -1;
    for (int64_t tap = 0; tap < window.kernel[dim]; ++tap) {
      const int64_t at =
          position * window.strides[dim] + tap * window.dilation[dim] - window.pad_begin[dim];
      if (at < 0 || at >= extent) continue;
      met.products += at / repeat != last ? 1 : 0;
      last = at / repeat;
      met.pixels += seen[static_cast<size_t>(at)] ? 0 : 1;
      seen[static_cast<size_t>(at)] = true;
    }
  }
  return met;
}

// The part of a convolution's counted multiplications that has to be made.
double needed_share(const CallNode& conv) {
  const Window window = window_of(conv);
  const Shape& data = conv.args[0]->tensor_type().shape;
  const Shape& result = conv.type().tensor().shape;
  const auto* image = as<CallNode>(conv.args[0]);
  std::optional<Ints> repeats;
  if (image != nullptr && image->op != nullptr && image->op->name.starts_with("image.resize"))
    repeats = repeat_factors(*image);
  double share = 1;
  for (size_t dim = 0; dim < window.rank(); ++dim) {
    // Transposed, each pixel of the data meets the taps that lead into the result.
    const Shape& fine = is_transposed(conv) ? result : data;
    const Shape& coarse = is_transposed(conv) ? data : result;
    const Met met =
        met_along(window, dim, fine[2 + dim], coarse[2 + dim], repeats ? (*repeats)[dim] : 1);
    share *= static_cast<double>(met.products) /
             static_cast<double>(coarse[2 + dim] * window.kernel[dim]);
  }
  return share;
}

// The part of attention's scores that are not hidden: query i sees keys 0 to i.
double seen_share(const CallNode& attention) {
  if (!attention.attrs.flag("causal")) return 1;
  const Shape &queries = attention.args[0]->tensor_type().shape,
              &keys = attention.args[1]->tensor_type().shape;
  const int64_t tq = queries[queries.size() - 2], tk = keys[keys.size() - 2];
  double seen = 0;
  for (int64_t query = 0; query < tq; ++query) seen += static_cast<double>(std::min(tk, query + 1));
  return seen / (static_cast<double>(tq) * static_cast<double>(tk));
}

double operations_of(const CallNode& call, const Expr& expr, const Work& stated, bool vectors) {
  // What moves data computes nothing; what is not a product is computed by the vector units.
  if (call.op->kind == FusionKind::kInjective || call.op->is_view) return 0;
  const bool product = call.op->name == "nn.attention" || is_convolution(call) ||
                       is_quantised(call) || call.op->name == "nn.dense" ||
                       call.op->name == "nn.matmul" || call.op->name == "nn.batch_matmul";
  if (!product) return vectors ? call_flops(expr) : 0;
  // An algorithm that makes fewer multiplications transforms what lies in the padding too.
  const double fewer = std::min(1.0, stated.multiplications),
               more = std::max(1.0, stated.multiplications);
  double share = fewer;
  if (is_convolution(call)) share = std::min(share, needed_share(call));
  if (call.op->name == "nn.attention") share *= seen_share(call);
  return share * more * call_flops(expr);
}

// Bytes of `data` that a call reads.
double read_by(const CallNode& call, const Expr& data) {
  const double all = bytes_of(data->type());
  if (call.op == nullptr || call.args.empty() || call.args[0] != data) return all;
  const std::string& name = call.op->name;
  if (name == "take" || name == "gather" || name == "gather_nd" || name == "strided_slice")
    return std::min(all, bytes_of(call.type()));
  if (!is_convolution(call) || is_transposed(call)) return all;
  const Window window = window_of(call);
  const Shape &shape = data->tensor_type().shape, &result = call.type().tensor().shape;
  double share = 1;
  for (size_t dim = 0; dim < window.rank(); ++dim)
    share *=
        static_cast<double>(met_along(window, dim, shape[2 + dim], result[2 + dim], 1).pixels) /
        static_cast<double>(shape[2 + dim]);
  return share * all;
}

// Bytes of a tensor that its consumers read; views only pass it on.
double read_bytes(const Expr& data, const Consumers& consumers, const Expr& result) {
  const double all = bytes_of(data->type());
  const auto found = consumers.find(data.get());
  if (data == result || found == consumers.end()) return all;
  double bytes = 0;
  for (const Expr& consumer : found->second) {
    const auto* call = as<CallNode>(consumer);
    if (call == nullptr || call->op == nullptr) return all;
    bytes += call->op->is_view ? read_bytes(consumer, consumers, result) : read_by(*call, data);
  }
  return std::min(all, bytes);
}

double in_encoding(double bytes, const TensorType& type, const Encoding& encoding) {
  return bytes * static_cast<double>(dtype_size(encoding.dtype)) /
         static_cast<double>(dtype_size(type.dtype));
}

}  // namespace

LeastWork least_work(const Function& function, const Variant& variant) {
  LeastWork work;
  const Result<Function> inlined = inline_calls(function);
  const Function& flat = inlined ? *inlined : function;
  const std::vector<Expr> nodes = post_order(flat->body);
  const bool quantised = std::any_of(nodes.begin(), nodes.end(), [](const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    return call != nullptr && call->op != nullptr && is_quantised(*call);
  });
  work.unit = quantised ? "int8" : variant.work.unit;
  Consumers consumers;
  for (const Expr& expr : nodes) {
    for (const Expr& input : expr_inputs(expr)) consumers[input.get()].push_back(expr);
    const auto* call = as<CallNode>(expr);
    if (call != nullptr && call->op != nullptr)
      work.operations += operations_of(*call, expr, variant.work, work.unit == "float32");
  }
  if (variant.work.in_place) return work;
  for (size_t i = 0; i < flat->params.size(); ++i) {
    const TensorType& type = flat->params[i]->tensor_type();
    work.activations +=
        in_encoding(read_bytes(flat->params[i], consumers, flat->body), type, variant.inputs[i]);
  }
  const std::vector<TensorType> results = flat->result_type().leaves();
  for (size_t i = 0; i < results.size(); ++i)
    work.activations += in_encoding(bytes_of(results[i]), results[i], variant.outputs[i]);
  for (const Expr& expr : nodes) {
    if (expr->kind() != ExprKind::kConstant) continue;
    const double bytes = read_bytes(expr, consumers, flat->body);
    const bool real = expr->tensor_type().dtype == DType::kFloat32;
    work.constants += real ? variant.work.constants * bytes : bytes;
  }
  return work;
}

LeastWork least_work_of_conversion(const TensorType& type, const Encoding& from,
                                   const Encoding& to) {
  LeastWork work;
  for (const Encoding* encoding : {&from, &to})
    work.activations += in_encoding(bytes_of(type), type, *encoding);
  return work;
}

}  // namespace collage
