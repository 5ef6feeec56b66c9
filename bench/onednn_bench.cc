// Every variant that the oneDNN backend offers for some typical kernels, weights warm. The tiny
// ones show what a call costs: it should stay under 5 microseconds.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <functional>
#include <memory>
#include <vector>

#include "backend/onednn/onednn_backend.h"
#include "base/check.h"
#include "build_function.h"
#include "ops/registry.h"

namespace collage {
namespace {

Expr input(const Shape& shape) { return make_var("x", TensorType{shape, DType::kFloat32}); }

Function conv(int64_t channels, int64_t outputs, int64_t extent, int64_t kernel, int64_t groups) {
  Expr x = input({1, channels, extent, extent});
  int64_t pad = kernel / 2;
  Expr y = call("nn.conv2d", {x, filled_constant({outputs, channels / groups, kernel, kernel})},
                {{"padding", Ints{pad, pad, pad, pad}}, {"groups", groups}});
  y = call("nn.bias_add", {y, filled_constant({outputs})});
  return make_function({x}, call("nn.relu", {y}));
}
Function dense(int64_t rows, int64_t width, int64_t units) {
  Expr x = input({rows, width});
  return make_function({x}, call("nn.dense", {x, filled_constant({units, width})}));
}
Function relu(const Shape& shape) {
  Expr x = input(shape);
  return make_function({x}, call("nn.relu", {x}));
}
Function attention(const Shape& shape, bool causal) {
  Expr q = input(shape), k = input(shape), v = input(shape);
  return make_function({q, k, v},
                       call("nn.attention", {q, k, v}, {{"scale", 0.125}, {"causal", causal}}));
}

void add(const std::string& name, const Function& function) {
  static const Backend* backend = make_onednn_backend().release();
  Target target;
  target.kind = "onednn";
  CompileOptions options;
  options.threads = omp_get_max_threads();
  auto variants = backend->variants(function, target, options);
  COLLAGE_CHECK(variants.ok(), "{}", variants.status().to_string());
  for (const Variant& variant : *variants) {
    auto body = [=](benchmark::State& state) {
      auto kernel = backend->compile(function, variant, target, options);
      COLLAGE_CHECK(kernel.ok(), "{}", kernel.status().to_string());
      std::vector<Tensor> tensors;
      auto buffer = [&](size_t bytes) {
        tensors.push_back(Tensor::zeros(DType::kInt8, {static_cast<int64_t>(bytes)}));
        return tensors.back().raw();
      };
      std::vector<void*> inputs;
      for (size_t i = 0; i < function->params.size(); ++i)
        inputs.push_back(buffer(variant.inputs[i].layout.physical_bytes(
            function->params[i]->tensor_type().shape, DType::kFloat32)));
      void* output = buffer(variant.outputs[0].layout.physical_bytes(
          function->result_type().tensor().shape, DType::kFloat32));
      void* workspace = buffer((*kernel)->workspace_bytes());
      for (auto unused : state) {
        (void)unused;
        Status status = (*kernel)->run({inputs.data(), &output, workspace});
        COLLAGE_CHECK(status.ok(), "{}", status.to_string());
      }
    };
    benchmark::RegisterBenchmark((name + "/" + variant.to_string()).c_str(), body)->UseRealTime();
  }
}

const bool kRegistered = [] {
  register_all_ops();
  add("tiny relu", relu({1, 16, 4, 4}));
  add("tiny dense", dense(1, 64, 64));
  add("tiny conv", conv(16, 16, 4, 1, 1));
  add("conv 64@56", conv(64, 64, 56, 3, 1));
  add("conv 128@28", conv(128, 128, 28, 3, 1));
  add("conv 256@14", conv(256, 256, 14, 3, 1));
  add("conv 512@7", conv(512, 512, 7, 3, 1));
  add("pointwise 64-256@56", conv(64, 256, 56, 1, 1));
  add("depthwise 144@56", conv(144, 144, 56, 3, 144));
  add("groups 32x4@56", conv(128, 128, 56, 3, 32));
  add("matvec 2560", dense(1, 2560, 2560));
  add("dense 64x1024x4096", dense(64, 1024, 4096));
  add("dense 128x768x3072", dense(128, 768, 3072));
  add("attention 12x128x64", attention({12, 128, 64}, false));
  add("causal 12x1024x64", attention({12, 1024, 64}, true));
  return true;
}();

}  // namespace
}  // namespace collage
