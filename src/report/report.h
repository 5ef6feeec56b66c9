// The report of one run, as JSON (docs/report-schema.json fixes its form) and as the summary that
// every run prints.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "report/roofline.h"
#include "report/speed_up.h"

namespace collage {

// What happened after compiling.
struct RunFacts {
  std::vector<double> samples;  // seconds of single inferences, empty when nothing was run
  bool is_first_run = false;    // … of one, which was not warmed up
  int threads = 0;
  double compile_seconds = 0;  // everything before the first inference, import included
  struct Verification {
    double max_abs = 0, max_rel = 0;
    bool within = true;
    std::vector<std::string> uninformative;  // outputs of which it proves nothing
  };
  std::optional<Verification> verification;
  // The difference of this program's outputs from another runtime's, on the same inputs.
  struct OutputDifference {
    double max_abs = 0,
           max_rel = 0;  // largest |a-b|, and as a part of the largest of the values like b
    bool within = true;  // what verify allows
    std::string reason;  // of the first element that is not; empty when within
  };
  struct Peer {
    std::string version;
    std::vector<double> samples;  // seconds
    std::string failure;
    // Most of each sample that is not the runtime's: calling it from another language.
    double call_seconds = 0;
    // Speed-up of this program over it, and over its samples without that. None if outputs differ.
    std::optional<SpeedUp> speed_up, speed_up_without_call;
    std::optional<OutputDifference> difference;
  };
  std::map<std::string, Peer> peers;
  // Another program for the model, timed in turns with this one.
  struct Rival {
    std::string name;
    std::vector<double> samples;  // seconds
    SpeedUp speed_up;             // of this program over it
  };
  // The best single backend's: the choice among many covers biased its earlier figure low.
  std::optional<Rival> alone;
  std::vector<Rival> partitions;  // by the user
  // Several inferences at a time, each by a stream of its own.
  struct PeerThroughput {
    std::string version;
    std::vector<double> per_second;   // inferences, a turn each
    std::optional<SpeedUp> speed_up;  // of this program over it; none where outputs differ
    OutputDifference difference;
  };
  struct Throughput {
    int streams = 0, threads_per_stream = 0;
    int programs = 1;                // 1: all streams share it
    std::string why_apart;           // that each stream has a program of its own
    std::vector<double> per_second;  // of all streams, a turn each
    std::vector<double> latencies;   // seconds of single inferences while others run
    std::map<std::string, PeerThroughput> peers;
  };
  std::optional<Throughput> throughput;
  // The steps of one run with their seconds, in order.
  std::vector<std::pair<std::string, double>> timeline;
  std::optional<MachinePeaks> peaks;
  size_t resident_bytes = 0;  // most memory that the process held during inference; 0: unknown
  // The predicted time of the same compilation with one more flag.
  struct WhatIf {
    std::string flag;  // "--exclude native"
    double predicted_seconds = 0;
    double change_seconds = 0;  // from the same without the flag, both by costs as they are now
    std::string failure;        // why nothing is
  };
  std::vector<WhatIf> what_if;
};

// Statistics of seconds of single inferences.
nlohmann::json latency_json(const std::vector<double>& samples);
nlohmann::json verification_json(const RunFacts::Verification& verification);

nlohmann::json report_json(const Model& model, const CompileReport& report, const RunFacts& facts);

// Describes the refusals of kernels that ended their worker; empty if there are none.
std::string refused_for_failures(const CostCounts& counts);

// Returns two lines: what runs where, and predicted against measured with the best single backend.
// A third if kernels were refused because they ended their worker.
std::string summary(const Model& model, const CompileReport& report, const RunFacts& facts);

}  // namespace collage
