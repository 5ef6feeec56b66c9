// Do kernels of two thread pools disturb each other? An OpenMP kernel (as oneDNN's and Halide's
// are) and an OpenVINO kernel (TBB) are timed alone and in turns. Counters, in milliseconds but for
// the last: `omp` and `ov` alone, `both` in turns, `ratio` = both / (omp + ov). Parked, the ratio
// should stay under 1.1. Rows are named OMP microseconds/OpenVINO channels.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "backend/openvino/openvino_backend.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "runtime/thread_team.h"

namespace collage {
namespace {

constexpr int kRounds = 200, kBlocks = 3;

double seconds(const std::function<void()>& f) {
  const Stopwatch watch;
  f();
  return watch.seconds();
}

// Fused multiply-adds on every thread of the team, `steps` each; a few regions, as a convolution
// with a reorder has.
class OmpKernel {
 public:
  OmpKernel(int threads, double microseconds) : threads_(threads) {
    steps_ = 1 << 14;
    for (int i = 0; i < 20; ++i) run();
    double best = 1;
    for (int i = 0; i < 50; ++i) best = std::min(best, seconds([&] { run(); }));
    steps_ = std::max<int64_t>(1, static_cast<int64_t>(1e-6 * microseconds / best * (1 << 14)));
  }
  void run() const {
    for (int region = 0; region < 3; ++region) {
#pragma omp parallel num_threads(threads_)
      {
        float x = 1.0F;
        for (int64_t i = 0; i < steps_; ++i) {
          x = x * 0.999F + 0.001F;
          benchmark::DoNotOptimize(x);
        }
      }
    }
  }

 private:
  int threads_;
  int64_t steps_ = 0;
};

class OpenVinoConv {
 public:
  OpenVinoConv(int threads, int64_t channels) {
    register_all_ops();
    TensorType data{{1, channels, 28, 28}, DType::kFloat32};
    TensorType weight{{channels, channels, 3, 3}, DType::kFloat32};
    Expr x = make_var("x", data);
    Expr body = make_call("nn.conv2d", {x, make_constant(random_tensor(weight, 1))},
                          {{"padding", Ints{1, 1, 1, 1}}})
                    .value();
    Function function = make_function({x}, body);
    auto backend = make_openvino_backend();
    kernel_ = backend
                  ->compile(function, Variant::plain("ov", function),
                            Target::parse("openvino").value(), {threads, ""})
                  .value();
    in_ = random_tensor(data, 2);
    out_ = Tensor::empty(DType::kFloat32, data.shape);
  }
  void run() {
    void *in = in_.raw(), *out = out_.raw();
    COLLAGE_CHECK(kernel_->run({&in, &out, nullptr}).ok(), "inference failed");
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Tensor in_, out_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void alternate(benchmark::State& state, bool parked) {
  ThreadTeam team(0);
  OmpKernel omp(team.size(), static_cast<double>(state.range(0)));
  OpenVinoConv ov(team.size(), state.range(1));
  auto run_ov = [&] {
    if (parked) {
      team.park([&] { ov.run(); });
    } else {
      ov.run();
    }
  };
  for (auto _ : state) {
    std::vector<double> omp_alone, ov_alone, both;
    for (int block = 0; block < kBlocks; ++block) {
      for (int i = 0; i < kRounds; ++i) omp_alone.push_back(seconds([&] { omp.run(); }));
      // Alone means without an OpenMP team that spins: the first runs wait for it to give up.
      for (int i = 0; i < kRounds; ++i) {
        double time = seconds([&] { ov.run(); });
        if (i > kRounds / 4) ov_alone.push_back(time);
      }
      for (int i = 0; i < kRounds; ++i)
        both.push_back(seconds([&] {
          omp.run();
          run_ov();
        }));
    }
    double a = median(omp_alone), b = median(ov_alone), sum = median(both);
    state.SetIterationTime(sum);
    state.counters["omp"] = a * 1e3;
    state.counters["ov"] = b * 1e3;
    state.counters["both"] = sum * 1e3;
    state.counters["ratio"] = sum / (a + b);
  }
}

void parked(benchmark::State& state) { alternate(state, true); }
void unparked(benchmark::State& state) { alternate(state, false); }

#define CASES \
  ArgsProduct({{50, 800}, {16, 128}})->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond)
BENCHMARK(parked)->CASES;
BENCHMARK(unparked)->CASES;

}  // namespace
}  // namespace collage
