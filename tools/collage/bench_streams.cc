// Throughput: several inferences at a time, each stream with a thread and a context of one program
// (docs/threads.md). Where a kernel of it does not run beside itself, each stream has a program of
// its own; after the first, these are compiled from costs that are known.

#include <algorithm>
#include <latch>
#include <thread>

#include "base/resident_memory.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "bench.h"
#include "report/model_reference.h"

namespace collage::tool {

namespace {

constexpr int kStreamTurns = 6;  // the fewest that give an interval

// What runs concurrently; the one place that knows what a stream is.
class Streams {
 public:
  static Result<Streams> compile(const Model& model, const BenchOptions& options,
                                 const std::vector<Tensor>& inputs, double* seconds) {
    Streams streams;
    streams.outputs_.resize(static_cast<size_t>(options.streams));
    TRY(streams.add_program(model, options, inputs, seconds));
    if (options.streams == 1) return streams;
    const Status shared = streams.make_contexts();
    if (shared.ok()) return streams;
    if (shared.code() != ErrorCode::kUnsupported) return shared;
    streams.why_apart_ = shared.to_string();
    while (streams.programs_.size() < streams.outputs_.size())
      TRY(streams.add_program(model, options, inputs, seconds));
    return streams;
  }

  // Each stream for that long; adds the seconds of every inference, and gives how many there were a
  // second of all streams together.
  Result<double> run(const std::vector<Tensor>& inputs, double seconds,
                     std::vector<double>& latencies) {
    const size_t count = outputs_.size();
    std::vector<std::vector<double>> samples(count);
    std::vector<Status> results(count);
    std::latch begin(static_cast<ptrdiff_t>(count) + 1);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        results[i] = run_once(i, inputs);  // untimed
        begin.arrive_and_wait();
        const Stopwatch all;
        while (results[i].ok() && (samples[i].empty() || all.seconds() < seconds)) {
          const Stopwatch one;
          results[i] = run_once(i, inputs);
          samples[i].push_back(one.seconds());
        }
      });
    begin.arrive_and_wait();
    const Stopwatch watch;
    for (std::thread& thread : threads) thread.join();
    const double elapsed = watch.seconds();
    size_t done = 0;
    for (size_t i = 0; i < count; ++i) {
      TRY(std::move(results[i]));
      done += samples[i].size();
      latencies.insert(latencies.end(), samples[i].begin(), samples[i].end());
    }
    return static_cast<double>(done) / elapsed;
  }

  Program take_first() { return std::move(programs_[0]); }
  const std::vector<Tensor>& outputs() const { return outputs_[0]; }
  const Program& first() const { return programs_[0]; }
  int programs() const { return static_cast<int>(programs_.size()); }
  const std::string& why_apart() const { return why_apart_; }

 private:
  Status add_program(const Model& model, const BenchOptions& options,
                     const std::vector<Tensor>& inputs, double* seconds) {
    double one = 0;
    programs_.push_back(TRY(tool::compile(model, options, &one, inputs)));
    *seconds += one;
    return {};
  }

  // Of the first program; kUnsupported where its kernels would not run at once.
  Status make_contexts() {
    for (const Step& step : programs_[0].impl().plan->steps)
      if (step.kernel->twins_take_turns())
        return unsupported("{} ({}): its kernels take turns", step.name, step.target);
    std::vector<Context> contexts;
    while (contexts.size() < outputs_.size()) contexts.push_back(TRY(programs_[0].make_context()));
    contexts_ = std::move(contexts);
    return {};
  }

  Status run_once(size_t stream, const std::vector<Tensor>& inputs) {
    return contexts_.empty() ? programs_[stream].run(inputs, outputs_[stream])
                             : contexts_[stream].run(inputs, outputs_[stream]);
  }

  std::vector<Program> programs_;
  std::vector<Context> contexts_;             // of the one program; none: each has a program
  std::vector<std::vector<Tensor>> outputs_;  // of each stream
  std::string why_apart_;                     // each stream has a program of its own
};

}  // namespace

Result<TimedModel> time_streams(Model model, const BenchOptions& options) {
  BenchOptions each = options;
  each.threads = std::max(1, thread_count(options) / options.streams);
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  RunFacts facts;
  facts.threads = each.threads;
  Streams streams = TRY(Streams::compile(model, each, inputs, &facts.compile_seconds));
  Rivals rivals = TRY(Rivals::start(
      options.model,
      TRY(file_inputs(options.model, model.inputs(), inputs, TRY(load_options(options)).constants)),
      {options.compare, model_reference(model, options.max_error), inputs, thread_count(options),
       options.max_error, options.streams}));

  RunFacts::Throughput throughput;
  throughput.streams = options.streams;
  throughput.threads_per_stream = each.threads;
  throughput.programs = streams.programs();
  throughput.why_apart = streams.why_apart();
  NoiseGate gate = gate_of(streams.first());
  const double seconds = options.duration / kStreamTurns;
  std::vector<std::vector<double>> inverse(1 + rivals.size());  // seconds an inference, a turn each
  reset_peak_resident_bytes();
  for (int turn = 0; turn < kStreamTurns; ++turn)
    for (size_t k = 0; k < inverse.size(); ++k) {
      const size_t i = turn % 2 == 0 ? k : inverse.size() - 1 - k;  // there and back
      gate.await(thread_count(options));
      const double rate = i == 0 ? TRY(streams.run(inputs, seconds, throughput.latencies))
                                 : TRY(rivals.throughput(i - 1, seconds));
      (i == 0 ? throughput.per_second : throughput.peers[rivals.name(i - 1)].per_second)
          .push_back(rate);
      inverse[i].push_back(1 / rate);
    }
  facts.resident_bytes = peak_resident_bytes();
  std::vector<Tensor> outputs = streams.outputs();
  for (size_t i = 0; i < rivals.size(); ++i) {
    RunFacts::PeerThroughput& peer = throughput.peers[rivals.name(i)];
    peer.version = rivals.version(i);
    peer.difference = TRY(rivals.difference(i, outputs));
    if (peer.difference.within) peer.speed_up = speed_up(inverse[0], inverse[1 + i]);
  }
  facts.throughput = std::move(throughput);
  return TimedModel{std::move(model),   streams.take_first(), std::nullopt,    std::move(inputs),
                    std::move(outputs), std::move(rivals),    std::move(facts)};
}

}  // namespace collage::tool
