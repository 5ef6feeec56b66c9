// Do kernels of oneDNN, OpenVINO and Halide disturb each other in one program? The same convolution
// (CHANNELS x EXTENT², 3x3, bias, relu) by each of the three is timed by itself, three instances in
// a row so that as many weights pass the caches, and then in turns, as the executor runs them (the
// team parked around OpenVINO). Counters, in milliseconds but for the last: each by itself (of
// three instances the third part), `both` in turns, `ratio` = in turns / the sum of the three,
// which should stay under 1.1.
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "base/check.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "ops/random_inputs.h"
#include "runtime/executor.h"

namespace collage {
namespace {

constexpr int kRounds = 100, kBlocks = 5;

Function convolution(int64_t channels, int64_t extent) {
  TensorType data{{1, channels, extent, extent}, DType::kFloat32};
  TensorType weight{{channels, channels, 3, 3}, DType::kFloat32};
  Expr x = make_var("x", data);
  Expr y = make_call("nn.conv2d", {x, make_constant(random_tensor(weight, 1))},
                     {{"padding", Ints{1, 1, 1, 1}}})
               .value();
  y = make_call("nn.bias_add", {y, make_constant(random_tensor({{channels}, DType::kFloat32}, 2))})
          .value();
  return make_function({x}, make_call("nn.relu", {y}).value());
}

std::shared_ptr<Kernel> compile(const std::string& backend_name, const Function& function,
                                int threads) {
  Backend* backend = find_backend(backend_name);
  COLLAGE_CHECK(backend != nullptr, "{} is not in this build", backend_name);
  Target target;
  target.kind = backend_name;
  CompileOptions options{threads, ""};
  std::vector<Variant> variants = backend->variants(function, target, options).value();
  // Winograd's workspace would push the others' data out of the private caches, which is a cost of
  // its own, not of changing pools.
  for (const Variant& variant : variants)
    if (variant.rounding.none())
      return backend->compile(function, variant, target, options).value();
  return backend->compile(function, variants[0], target, options).value();
}

// A plan that runs the kernels one after the other on buffers large enough for any layout.
Executor program(const std::vector<std::shared_ptr<Kernel>>& kernels, const TensorType& type,
                 int threads) {
  auto plan = std::make_shared<Plan>();
  size_t bytes = type.bytes() * 2, workspace = 0;
  for (size_t b = 0; b < 2; ++b) {
    Buffer buffer;
    buffer.place = Buffer::Place::kArena;
    buffer.offset = b * bytes;
    buffer.bytes = bytes;
    buffer.type = type;
    plan->buffers.push_back(buffer);
  }
  for (const std::shared_ptr<Kernel>& kernel : kernels) {
    Step step;
    step.name = "step " + std::to_string(plan->steps.size());
    step.kernel = kernel;
    step.inputs = {plan->steps.size() % 2};
    step.outputs = {1 - plan->steps.size() % 2};
    step.workspace_offset = 2 * bytes;
    workspace = std::max(workspace, kernel->workspace_bytes());
    plan->steps.push_back(std::move(step));
  }
  plan->arena_bytes = 2 * bytes + workspace;
  return Executor::create(std::move(plan), threads).value();
}

double run_seconds(Executor& executor) {
  const Stopwatch watch;
  COLLAGE_CHECK(executor.run({}, {}).ok(), "a run failed");
  return watch.seconds();
}

void sequence(benchmark::State& state) {
  register_all();
  ThreadTeam team(0);
  Function function = convolution(state.range(0), state.range(1));
  const TensorType type = function->params[0]->tensor_type();
  const std::vector<std::string> names = {"onednn", "openvino", "native"};
  std::vector<std::shared_ptr<Kernel>> kernels;
  std::vector<Executor> programs;
  for (const std::string& name : names) {
    std::vector<std::shared_ptr<Kernel>> alike;
    for (size_t i = 0; i < names.size(); ++i) alike.push_back(compile(name, function, team.size()));
    kernels.push_back(alike[0]);
    programs.push_back(program(alike, type, team.size()));
  }
  programs.push_back(program(kernels, type, team.size()));
  for (auto _ : state) {
    std::vector<std::vector<double>> samples(programs.size());
    for (int block = 0; block < kBlocks; ++block)
      for (size_t p = 0; p < programs.size(); ++p) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        for (int i = 0; i < 10; ++i) run_seconds(programs[p]);
        for (int i = 0; i < kRounds; ++i) samples[p].push_back(run_seconds(programs[p]));
      }
    double sum = 0;
    for (size_t p = 0; p < names.size(); ++p) {
      double alone = median(samples[p]) / static_cast<double>(names.size());
      state.counters[names[p]] = 1e3 * alone;
      sum += alone;
    }
    double both = median(samples.back());
    state.SetIterationTime(both);
    state.counters["both"] = 1e3 * both;
    state.counters["ratio"] = both / sum;
  }
}

BENCHMARK(sequence)
    ->Args({64, 56})
    ->Args({128, 28})
    ->Args({256, 14})
    ->Args({64, 14})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace collage
