#include "cost/analytic.h"

#include <algorithm>
#include <string_view>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

double analytic_seconds(double flops, double bytes) {
  constexpr double kFlopsPerSecond = 1e9, kBytesPerSecond = 2e9, kCall = 5e-6;
  return kCall + flops / kFlopsPerSecond + bytes / kBytesPerSecond;
}

namespace {

bool is_spatial_convolution(const CallNode& call) {
  if (call.op == nullptr || !std::string_view(call.op->name).starts_with("nn.conv")) return false;
  const Shape& weight = call.args.at(1)->tensor_type().shape;
  return std::any_of(weight.begin() + 2, weight.end(), [](int64_t extent) { return extent > 1; });
}

}  // namespace

double least_kernel_seconds(const Function& function, int threads, double speedup) {
  constexpr double kCyclesPerSecond = 5e9, kBytesPerSecond = 200e9;  // of a core
  constexpr double kWinograd = 4;
  const double flops_per_cycle = __builtin_cpu_supports("avx512f") ? 64 : 32;
  double flops = 0;
  for (const Expr& expr : post_order(function->body))
    if (const auto* call = as<CallNode>(expr))
      flops += call_flops(*call) / (is_spatial_convolution(*call) ? kWinograd : 1);
  const double cores = threads;
  return std::max(flops / (cores * flops_per_cycle * kCyclesPerSecond * speedup),
                  function_bytes(function) / (cores * kBytesPerSecond));
}

double least_conversion_seconds(const TensorType& type, const Encoding& from, const Encoding& to,
                                int threads) {
  constexpr double kBytesPerSecond = 50e9;  // of a core
  const double elements = static_cast<double>(num_elements(type.shape));
  const double bytes =
      elements * static_cast<double>(dtype_size(from.dtype) + dtype_size(to.dtype));
  return bytes / (kBytesPerSecond * threads);
}

}  // namespace collage
