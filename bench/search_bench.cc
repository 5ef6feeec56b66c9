// How long the search takes, and how good it is, on synthetic problems like nasnet_a and nasrnn and
// on random graphs that branch.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "search/search.h"
#include "search/synthetic.h"

namespace collage {
namespace {

void run(benchmark::State& state, const std::string& text, unsigned seed) {
  SyntheticProblem synthetic(text, seed);
  SearchResult result;
  for (auto _ : state) {
    result = *search_covers(synthetic.problem());
    benchmark::DoNotOptimize(result);
  }
  state.counters["nodes"] = static_cast<double>(synthetic.graph().size());
  state.counters["candidates"] = static_cast<double>(synthetic.problem().candidates.size());
  state.counters["branches"] = static_cast<double>(result.counts.branches);
  state.counters["gap_percent"] = 100 * (result.covers[0].seconds / result.lower_bound - 1);
  state.counters["exact"] = result.exact;
  state.counters["covers"] = static_cast<double>(result.covers.size());
  state.counters["kernels"] = static_cast<double>(result.covers[0].kernels.size());
  state.counters["predicted_ms"] = result.covers[0].seconds * 1e3;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;  // of all so far
}

void nasnet(benchmark::State& state) {
  run(state, SyntheticProblem::nasnet(static_cast<size_t>(state.range(0))), 1);
}
void nasrnn(benchmark::State& state) {
  run(state, SyntheticProblem::nasrnn(static_cast<size_t>(state.range(0))), 1);
}
void branching(benchmark::State& state) {
  run(state, SyntheticProblem::branching(static_cast<size_t>(state.range(0)), 6, 1), 1);
}
void candidates(benchmark::State& state) {
  for (auto _ : state) SyntheticProblem(SyntheticProblem::nasnet(17), 1);
}
BENCHMARK(nasnet)->Arg(2)->Arg(17)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(nasrnn)->Arg(1)->Arg(5)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(branching)->Arg(500)->Arg(2000)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(candidates)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace collage
