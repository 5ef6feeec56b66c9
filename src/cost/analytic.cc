#include "cost/analytic.h"

#include <algorithm>
#include <string_view>

#include "ir/op.h"
#include "ir/visitor.h"
#include "measure/peak_loops.h"

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

// How many of the call's operations are made at once where one of float32 is.
double operations_at_once(const CallNode& call) {
  constexpr double kWinograd = 4, kDotProducts = 4;
  // 16 * 16 * 64 products in 16 cycles, where two units of vectors have 2 * 16 a cycle.
  constexpr double kMatrixUnit = 32;
  if (is_spatial_convolution(call)) return kWinograd;
  if (call.op == nullptr || !call.op->name.starts_with("qnn.")) return 1;
  return has_int8_matrix_unit() ? kMatrixUnit : kDotProducts;
}

}  // namespace

double least_kernel_seconds(const Function& function, int threads, double speedup) {
  constexpr double kCyclesPerSecond = 5e9, kBytesPerSecond = 200e9;  // of a core
  const double flops_per_cycle = __builtin_cpu_supports("avx512f") ? 64 : 32;
  double flops = 0;
  for (const Expr& expr : post_order(function->body))
    if (const auto* call = as<CallNode>(expr))
      flops += call_flops(*call) / operations_at_once(*call);
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
