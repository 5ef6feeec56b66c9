// The openvino backend against OpenVINO itself: what one call costs, and whole models translated by
// us and read by OpenVINO's own importer, timed in turns (blocks of 10 runs).
//
//   COLLAGE_BENCH_MODELS=resnet50.onnx:bert.onnx [COLLAGE_BENCH_THREADS=1] openvino_bench
//
// Counters: `ours` and `theirs` are medians in milliseconds, `ratio` ours / theirs (it must stay
// under 1.05), `cpu_ratio` the same of processor time (meaningful with one thread, where it does
// not mind a busy machine), `error` the largest difference and `largest` the largest output.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "backend/openvino/kernels/openvino_kernel.h"
#include "backend/openvino/openvino_backend.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "frontend/onnx/importer.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "runtime/thread_team.h"

namespace collage {
namespace {

int threads() {
  const char* given = std::getenv("COLLAGE_BENCH_THREADS");
  return given == nullptr ? ThreadTeam::available_cores() : std::atoi(given);
}
const int kThreads = threads();

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds(const std::function<void()>& f) {
  const Stopwatch watch;
  f();
  return watch.seconds();
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Runner {
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> inputs, outputs;
  std::vector<void*> in, out;

  Runner(const Function& function, int threads) {
    auto backend = make_openvino_backend();
    auto compiled = backend->compile(function, Variant::plain("ov", function),
                                     Target::parse("openvino").value(), {threads, ""});
    COLLAGE_CHECK(compiled.ok(), "{}", compiled.status().to_string());
    kernel = std::move(compiled).value();
    uint64_t seed = 0;
    for (const Expr& param : function->params)
      inputs.push_back(random_tensor(param->tensor_type(), ++seed));
    for (const TensorType& leaf : function->result_type().leaves())
      outputs.push_back(Tensor::empty(leaf.dtype, leaf.shape));
    for (Tensor& tensor : inputs) in.push_back(tensor.raw());
    for (Tensor& tensor : outputs) out.push_back(tensor.raw());
  }
  void run() {
    Status status = kernel->run({in.data(), out.data(), nullptr});
    COLLAGE_CHECK(status.ok(), "{}", status.to_string());
  }
};

// One relu of 16 elements, bound once or to two buffers in turns.
void call(benchmark::State& state) {
  register_all_ops();
  Expr x = make_var("x", TensorType{{1, 16}, DType::kFloat32});
  Runner runner(make_function({x}, make_call("nn.relu", {x}).value()),
                static_cast<int>(state.range(0)));
  Tensor other = runner.inputs[0].clone();
  void* buffers[] = {runner.in[0], other.raw()};
  size_t turn = 0;
  for (auto _ : state) {
    if (state.range(1) != 0) runner.in[0] = buffers[++turn % 2];
    runner.run();
  }
}
BENCHMARK(call)->ArgNames({"threads", "rebind"})->ArgsProduct({{1, 2}, {0, 1}})->UseRealTime();

struct Direct {
  ov::InferRequest request;
  Direct(const std::string& file, const Runner& runner) {
    ov::Core& core = *openvino::shared_core().value();
    request = core.compile_model(core.read_model(file), "CPU",
                                 ov::hint::inference_precision(ov::element::f32),
                                 ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
                                 ov::inference_num_threads(kThreads))
                  .create_infer_request();
    for (size_t i = 0; i < runner.inputs.size(); ++i) {
      const Tensor& given = runner.inputs[i];
      ov::Tensor input = request.get_input_tensor(i);
      COLLAGE_CHECK(input.get_byte_size() == given.bytes(), "input {}", i);
      std::memcpy(input.data(), given.raw(), given.bytes());
    }
  }
};

void model(benchmark::State& state, const std::string& file, bool simplified) {
  register_all_ops();
  auto imported = import_onnx(file);
  COLLAGE_CHECK(imported.ok(), "{}", imported.status().to_string());
  Module module = imported->module;
  if (simplified) {
    auto changed = simplification_pipeline().run(module);
    COLLAGE_CHECK(changed.ok(), "{}", changed.status().to_string());
  }
  Runner ours(module.main(), kThreads);
  Direct theirs(file, ours);
  for (auto _ : state) {
    std::vector<double> a, b, cpu_a, cpu_b;
    auto block = [](std::vector<double>& wall, std::vector<double>& cpu, const auto& f) {
      f();
      for (int i = 0; i < 10; ++i) {
        double begin = cpu_seconds();
        wall.push_back(seconds(f));
        cpu.push_back(cpu_seconds() - begin);
      }
    };
    const Stopwatch watch;
    while (watch.seconds() < 4 || a.size() < 20) {
      block(a, cpu_a, [&] { ours.run(); });
      block(b, cpu_b, [&] { theirs.request.infer(); });
    }
    state.SetIterationTime(median(a));
    state.counters["ours"] = median(a) * 1e3;
    state.counters["theirs"] = median(b) * 1e3;
    state.counters["ratio"] = median(a) / median(b);
    state.counters["cpu_ratio"] = median(cpu_a) / median(cpu_b);
  }
  double error = 0, largest = 0;
  for (size_t i = 0; i < ours.outputs.size(); ++i) {
    const Tensor& x = ours.outputs[i];
    ov::Tensor y = theirs.request.get_output_tensor(i);
    if (x.dtype() != DType::kFloat32 || y.get_byte_size() != x.bytes()) continue;
    for (int64_t j = 0; j < x.size(); ++j) {
      largest = std::max(largest, std::abs(static_cast<double>(y.data<float>()[j])));
      error = std::max(error, std::abs(static_cast<double>(x.data<float>()[j]) -
                                       static_cast<double>(y.data<float>()[j])));
    }
  }
  state.counters["error"] = error;
  state.counters["largest"] = largest;
}

const bool registered = [] {
  const char* given = std::getenv("COLLAGE_BENCH_MODELS");
  std::stringstream files(given == nullptr ? "" : given);
  for (std::string file; std::getline(files, file, ':');)
    for (bool simplified : {false, true})
      benchmark::RegisterBenchmark(
          fmt::format("{}/{}", std::filesystem::path(file).stem().string(),
                      simplified ? "simplified" : "imported")
              .c_str(),
          [file, simplified](benchmark::State& state) { model(state, file, simplified); })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace collage
