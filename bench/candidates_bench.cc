// How long finding candidates takes, and how much memory: of a model (COLLAGE_BENCH_MODEL=FILE, say
// nasnet_a.onnx, which must take less than 1 s) and of random branching graphs (5,000 operators:
// less than 20 s and 1 GB), with all targets of this machine; and with the most permissive rule.
//
//   COLLAGE_BENCH_MODEL=nasnet_a.onnx build/release/bench/candidates_bench
//
// peak_MB is the process's, so it holds what ran before too: name one with --benchmark_filter.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdlib>
#include <random>
#include <unordered_set>

#include "backend/targets/targets.h"
#include "choose/costing.h"
#include "compiler/compile.h"
#include "partition/prune.h"

namespace collage {
namespace {

// A random function over real operators that all backends know: convolutions, chains, residuals,
// concatenations and poolings of one shape.
Function random_network(size_t calls, uint64_t seed) {
  std::mt19937_64 rng(seed);
  auto below = [&](size_t n) { return rng() % n; };
  const TensorType type{{1, 8, 6, 6}, DType::kFloat32};
  Expr x = make_var("x", type);
  auto constant = [&](const Shape& shape) {
    return make_constant(*Tensor::allocate(DType::kFloat32, shape));
  };
  const Attrs same = {{"padding", Ints{1, 1, 1, 1}}};
  const Attrs pool = {{"padding", Ints{1, 1, 1, 1}}, {"pool_size", Ints{3, 3}}};
  std::vector<Expr> values = {x};
  std::unordered_set<const ExprNode*> used;
  auto pick = [&] {
    size_t n = values.size();
    Expr value = values[below(4) == 0 ? below(n) : n - 1 - below(std::min<size_t>(n, 5))];
    used.insert(value.get());
    return value;
  };
  auto add = [&](std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    values.push_back(*make_call(op, std::move(args), std::move(attrs)));
    --calls;
  };
  while (calls > 3) {
    static constexpr const char* kUnary[] = {"nn.relu", "sigmoid", "tanh", "exp"};
    static constexpr const char* kBinary[] = {"add", "multiply", "maximum"};
    switch (below(8)) {
      case 0:
      case 1:
        add("nn.conv2d", {pick(), constant({8, 8, 3, 3})}, same);
        used.insert(values.back().get());
        add("nn.bias_add", {values.back(), constant({8})});
        break;
      case 2:
        add("nn.avg_pool2d", {pick()}, pool);
        break;
      case 3:
        add("concatenate", {make_tuple({pick(), pick()})}, {{"axis", int64_t{1}}});
        add("nn.conv2d", {values.back(), constant({8, 16, 3, 3})}, same);
        values.erase(values.end() - 2);  // of another shape
        break;
      case 4:
      case 5:
        add(kBinary[below(3)], {pick(), pick()});
        break;
      default:
        add(kUnary[below(4)], {pick()});
    }
  }
  std::erase_if(values, [&](const Expr& value) { return used.contains(value.get()); });
  return make_function({x}, make_tuple(std::move(values)));
}

void report(benchmark::State& state, const DataflowGraph& graph,
            const std::vector<CandidatePartition>& candidates) {
  std::map<std::string, double> by_target;
  for (const CandidatePartition& candidate : candidates) ++by_target[candidate.spec->name];
  for (const auto& [target, count] : by_target) state.counters[target] = count;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["nodes"] = static_cast<double>(graph.size());
  state.counters["candidates"] = static_cast<double>(candidates.size());
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

// The graph and its candidates, as compiling makes them.
void all_targets(benchmark::State& state, const Module& simplified) {
  std::vector<PartitionSpecPtr> specs = *select_targets({}, {});
  const Module& module = simplified;
  for (auto _ : state) {
    DataflowGraph graph(untangle_tuples(module.main()));
    std::vector<CandidatePartition> candidates = *checked_candidates(graph, specs);
    state.PauseTiming();
    report(state, graph, candidates);
    state.ResumeTiming();
  }
}

void model(benchmark::State& state) {
  const char* file = std::getenv("COLLAGE_BENCH_MODEL");
  if (file == nullptr) return state.SkipWithError("COLLAGE_BENCH_MODEL names no model");
  all_targets(state, Model::load(file)->impl().module);
}

void network(benchmark::State& state) {
  (void)*select_targets({}, {});  // which registers the operators
  Module module;
  module.functions["main"] = random_network(static_cast<size_t>(state.range(0)), 7);
  all_targets(state, module);
}

// Anything with anything, and pruned.
void any_with_any(benchmark::State& state) {
  (void)*select_targets({}, {});  // which registers the operators
  Function function = random_network(static_cast<size_t>(state.range(0)), 7);
  PartitionConfig config = *parse_config(
      R"json({"targets": [{"name": "all", "rule": "combine(is_op_up_to('anchor'), joins: any)"}]})json",
      "config");
  for (auto _ : state) {
    DataflowGraph graph(untangle_tuples(function));
    std::vector<CandidatePartition> candidates = gather_candidates(graph, config.specs);
    size_t kept = prune_candidates(graph, candidates).size();
    state.PauseTiming();
    report(state, graph, candidates);
    state.counters["kept"] = static_cast<double>(kept);
    state.ResumeTiming();
  }
}

BENCHMARK(model)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(network)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(any_with_any)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace collage
