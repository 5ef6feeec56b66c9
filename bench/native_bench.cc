// 3x3 convolutions with bias and relu: every blocked variant of native, oneDNN and amx, with
// weights in the cache ("warm") and, as in a whole model, behind other weights ("cold": copies of
// the kernel take turns). NATIVE_BENCH_SHAPES=64x64x56,... chooses others: channels, outputs,
// extent[, depth]; p256x1024x14 is a 1x1 convolution with a residual, u128x64x64 a 3x3 one of an
// image of 64x64 pixels that is enlarged twice by repeating them, d144x56x3x1 a depthwise one
// (channels, extent, kernel, stride), t128x64x64 a transposed 4x4 one
// of stride 2, j64x64x256x56x1 the sum of two 1x1 ones (channels of both, outputs, extent, the
// second's stride), m64x1024x4096 a product of 64 rows with 1024 x 4096 weights, a12x128x64
// attention (heads, tokens, width), c12x1024x64 the same under a causal mask and s12x1024x64 that
// with all operands side by side in one tensor. A backend that refuses is left out.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <vector>

#include "backend/amx/amx_backend.h"
#include "backend/native/native_backend.h"
#include "backend/onednn/onednn_backend.h"
#include "base/check.h"
#include "build_function.h"
#include "ops/registry.h"

namespace collage {
namespace {

constexpr size_t kColdBytes = 64 << 20;

Function conv(int64_t channels, int64_t outputs, int64_t extent, int64_t depth, int64_t kernel) {
  Shape data{1, channels, extent, extent}, weight{outputs, channels, kernel, kernel};
  if (depth > 0) {
    data.insert(data.begin() + 2, depth);
    weight.push_back(kernel);
  }
  const Expr x = make_var("x", TensorType{data, DType::kFloat32});
  const Ints padding(2 * (data.size() - 2), kernel / 2);
  Expr y = call(depth > 0 ? "nn.conv3d" : "nn.conv2d", {x, filled_constant(weight)},
                {{"padding", padding}});
  y = call("nn.bias_add", {y, filled_constant({outputs})});
  if (kernel > 1) return make_function({x}, call("nn.relu", {y}));
  const Expr residual = make_var("residual", y->tensor_type());
  return make_function({x, residual}, call("nn.relu", {call("add", {y, residual})}));
}

/// One filter for each channel.
Function depthwise_conv(int64_t channels, int64_t extent, int64_t kernel, int64_t stride) {
  const Expr x = make_var("x", TensorType{{1, channels, extent, extent}, DType::kFloat32});
  Expr y = call(
      "nn.conv2d", {x, filled_constant({channels, 1, kernel, kernel})},
      {{"padding", Ints(4, kernel / 2)}, {"strides", Ints{stride, stride}}, {"groups", channels}});
  y = call("nn.bias_add", {y, filled_constant({channels})});
  return make_function({x}, call("nn.relu", {y}));
}

/// The sum of two 1x1 convolutions, the second of an image twice as wide and high, or of as large a
/// one.
Function sum_of_convs(int64_t first, int64_t second, int64_t outputs, int64_t extent,
                      int64_t stride) {
  const auto one = [&](const char* name, int64_t channels, int64_t step) {
    const Expr x =
        make_var(name, TensorType{{1, channels, step * extent, step * extent}, DType::kFloat32});
    const Expr y = call("nn.conv2d", {x, filled_constant({outputs, channels, 1, 1})},
                        {{"strides", Ints{step, step}}});
    return std::pair{x, call("nn.bias_add", {y, filled_constant({outputs})})};
  };
  const auto a = one("x", first, 1), b = one("shortcut", second, stride);
  return make_function({a.first, b.first}, call("nn.relu", {call("add", {a.second, b.second})}));
}

/// Of an image enlarged twice.
Function enlarged_conv(int64_t channels, int64_t outputs, int64_t extent) {
  const Expr x = make_var("x", TensorType{{1, channels, extent, extent}, DType::kFloat32});
  Expr y = call("image.resize2d", {x},
                {{"size", Ints{2 * extent, 2 * extent}},
                 {"method", std::string("nearest_neighbor")},
                 {"coordinate_transformation_mode", std::string("asymmetric")},
                 {"rounding_method", std::string("floor")}});
  y = call("nn.conv2d", {y, filled_constant({outputs, channels, 3, 3})},
           {{"padding", Ints{1, 1, 1, 1}}});
  y = call("nn.bias_add", {y, filled_constant({outputs})});
  return make_function({x}, call("nn.relu", {y}));
}

Function transposed_conv(int64_t channels, int64_t outputs, int64_t extent) {
  const Expr x = make_var("x", TensorType{{1, channels, extent, extent}, DType::kFloat32});
  Expr y = call("nn.conv2d_transpose", {x, filled_constant({channels, outputs, 4, 4})},
                {{"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
  y = call("nn.bias_add", {y, filled_constant({outputs})});
  return make_function({x}, call("nn.relu", {y}));
}

Function product(int64_t rows, int64_t depth, int64_t columns) {
  const Expr x = make_var("x", TensorType{{rows, depth}, DType::kFloat32});
  return make_function({x}, call("nn.matmul", {x, filled_constant({depth, columns})}));
}

Function attention(const Shape& shape, bool causal) {
  const Expr q = make_var("q", TensorType{shape, DType::kFloat32}),
             k = make_var("k", TensorType{shape, DType::kFloat32}),
             v = make_var("v", TensorType{shape, DType::kFloat32});
  return make_function({q, k, v},
                       call("nn.attention", {q, k, v}, {{"scale", 0.125}, {"causal", causal}}));
}

/// The same of a tensor that holds queries, keys and values of all heads side by side, as one
/// product gives them, to one that holds the results so.
Function split_attention(int64_t heads, int64_t tokens, int64_t width) {
  const Expr x = make_var("x", TensorType{{tokens, 3 * heads * width}, DType::kFloat32});
  const Expr split =
      call("split", {x}, {{"indices_or_sections", int64_t{3}}, {"axis", int64_t{1}}});
  std::vector<Expr> operands;
  for (int64_t i = 0; i < 3; ++i) {
    const Expr part = call("reshape", {make_tuple_get_item(split, i).value()},
                           {{"newshape", Ints{tokens, heads, width}}});
    operands.push_back(call("transpose", {part}, {{"axes", Ints{1, 0, 2}}}));
  }
  const Expr y = call("nn.attention", operands, {{"scale", 0.125}, {"causal", true}});
  return make_function({x}, call("transpose", {y}, {{"axes", Ints{1, 0, 2}}}));
}

/// Kernels of one variant that take turns, and their buffers.
class Copies {
 public:
  Copies(const Backend& backend, const Function& function, const Variant& variant, bool cold) {
    const char* cache = std::getenv("NATIVE_BENCH_CACHE");
    const CompileOptions options{omp_get_max_threads(), cache != nullptr ? cache : ""};
    Target target;
    target.kind = backend.name();
    size_t bytes = 0;
    do {
      auto kernel = backend.compile(function, variant, target, options);
      COLLAGE_CHECK(kernel.ok(), "{}", kernel.status().to_string());
      kernels_.push_back(std::move(*kernel));
      bytes += std::max<size_t>(kernels_.back()->constant_bytes(), 1 << 16);
    } while (cold && bytes < kColdBytes);
    for (size_t i = 0; i < function->params.size(); ++i) {
      inputs_.push_back(buffer(variant.inputs[i], function->params[i]->tensor_type().shape));
      pointers_.push_back(inputs_.back().raw());
    }
    output_ = buffer(variant.outputs[0], function->result_type().tensor().shape);
    workspace_ =
        Tensor::zeros(DType::kInt8, {static_cast<int64_t>(kernels_[0]->workspace_bytes())});
  }
  void run() {
    void* out = output_.raw();
    const Status status =
        kernels_[turn_++ % kernels_.size()]->run({pointers_.data(), &out, workspace_.raw()});
    COLLAGE_CHECK(status.ok(), "{}", status.to_string());
  }

 private:
  static Tensor buffer(const Encoding& encoding, const Shape& shape) {
    return Tensor::zeros(
        DType::kInt8,
        {static_cast<int64_t>(encoding.layout.physical_bytes(shape, DType::kFloat32))});
  }
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Tensor> inputs_;
  std::vector<void*> pointers_;
  Tensor output_, workspace_;
  size_t turn_ = 0;
};

void add(const std::string& name, const Function& function, double flops) {
  static const std::unique_ptr<Backend> backends[] = {make_native_backend(), make_onednn_backend(),
                                                      make_amx_backend()};
  for (const auto& backend : backends) {
    if (!backend->available().ok()) continue;
    Target target;
    target.kind = backend->name();
    const CompileOptions options{omp_get_max_threads(), ""};
    auto variants = backend->variants(function, target, options);
    if (!variants.ok()) continue;
    for (const Variant& variant : *variants) {
      const bool image = function->params[0]->tensor_type().shape.size() > 3;
      if (image && (variant.inputs[0].is_plain() || variant.outputs[0].is_plain())) continue;
      for (const bool cold : {false, true}) {
        const std::string title =
            fmt::format("{}/{}/{}/{}", name, backend->name(), variant.name, cold ? "cold" : "warm");
        const Backend* maker = backend.get();
        benchmark::RegisterBenchmark(
            title.c_str(),
            [=](benchmark::State& state) {
              Copies copies(*maker, function, variant, cold);
              for (int i = 0; i < 4; ++i) copies.run();
              for (auto unused : state) {
                (void)unused;
                copies.run();
              }
              state.counters["GF/s"] =
                  benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
            })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

const bool kRegistered = [] {
  register_all_ops();
  const char* chosen = std::getenv("NATIVE_BENCH_SHAPES");
  std::istringstream shapes(chosen != nullptr ? chosen
                                              : "64x64x56,128x128x28,256x256x14,512x512x7");
  for (std::string shape; std::getline(shapes, shape, ',');) {
    if (shape[0] == 'm') {
      int64_t m = 0, k = 0, n = 0;
      std::sscanf(shape.c_str(), "m%ldx%ldx%ld", &m, &k, &n);
      add(shape, product(m, k, n), 2.0 * static_cast<double>(m * k * n));
      continue;
    }
    if (shape[0] == 'a' || shape[0] == 'c') {
      int64_t heads = 0, tokens = 0, width = 0;
      std::sscanf(shape.c_str() + 1, "%ldx%ldx%ld", &heads, &tokens, &width);
      add(shape, attention({heads, tokens, width}, shape[0] == 'c'),
          4.0 * static_cast<double>(heads * tokens * tokens * width));
      continue;
    }
    if (shape[0] == 's') {
      int64_t heads = 0, tokens = 0, width = 0;
      std::sscanf(shape.c_str(), "s%ldx%ldx%ld", &heads, &tokens, &width);
      add(shape, split_attention(heads, tokens, width),
          4.0 * static_cast<double>(heads * tokens * tokens * width));
      continue;
    }
    if (shape[0] == 'u' || shape[0] == 't') {
      const bool transposed = shape[0] == 't';
      int64_t channels = 0, outputs = 0, extent = 0;
      std::sscanf(shape.c_str() + 1, "%ldx%ldx%ld", &channels, &outputs, &extent);
      add(shape, (transposed ? transposed_conv : enlarged_conv)(channels, outputs, extent),
          2.0 * (transposed ? 16 : 36) * static_cast<double>(channels * outputs * extent * extent));
      continue;
    }
    if (shape[0] == 'd') {
      int64_t channels = 0, extent = 0, kernel = 3, stride = 1;
      std::sscanf(shape.c_str(), "d%ldx%ldx%ldx%ld", &channels, &extent, &kernel, &stride);
      const int64_t out = (extent - 1) / stride + 1;
      add(shape, depthwise_conv(channels, extent, kernel, stride),
          2.0 * static_cast<double>(kernel * kernel * channels * out * out));
      continue;
    }
    if (shape[0] == 'j') {
      int64_t first = 0, second = 0, outputs = 0, extent = 0, stride = 1;
      std::sscanf(shape.c_str(), "j%ldx%ldx%ldx%ldx%ld", &first, &second, &outputs, &extent,
                  &stride);
      add(shape, sum_of_convs(first, second, outputs, extent, stride),
          2.0 * static_cast<double>((first + second) * outputs * extent * extent));
      continue;
    }
    const bool pointwise = shape[0] == 'p';
    int64_t channels = 0, outputs = 0, extent = 0, depth = 0;
    std::sscanf(shape.c_str() + pointwise, "%ldx%ldx%ldx%ld", &channels, &outputs, &extent, &depth);
    const int64_t kernel = pointwise ? 1 : 3;
    const int64_t taps = kernel * kernel * (depth > 0 ? kernel * depth : 1);
    add(shape, conv(channels, outputs, extent, depth, kernel),
        2.0 * static_cast<double>(taps * channels * outputs * extent * extent));
  }
  return true;
}();

}  // namespace
}  // namespace collage
