// Another runtime in a child process (bench/peers/peer.py), for `bench --compare`: JSON lines over
// pipes.
#pragma once

#include <collage/tensor.h>
#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage::tool {

class Peer {
 public:
  // Starts the runtime ("onnxruntime", "openvino") on a model whose inputs have these shapes by
  // position, dynamic dimensions included. Only OpenVINO knows the `precision` "bf16". `streams`: 0
  // for latency, else that many inferences at a time. kUnavailable: Python or the runtime is
  // missing.
  static Result<std::unique_ptr<Peer>> start(const std::string& runtime, const std::string& model,
                                             const std::vector<Shape>& shapes, int threads,
                                             const std::string& precision = "f32", int streams = 0);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& version() const { return version_; }
  // Reads DIR/0_name.npy, DIR/1_name.npy …, by position; the outputs of its latest run lie there
  // too.
  Status set_inputs(const std::string& folder);
  Status save_outputs(const std::string& folder);
  // Returns the seconds of each timed run.
  Result<std::vector<double>> run(int warm_ups, int iterations);
  // Returns the seconds of one run of a model with a single operation, a median: an upper bound of
  // the time that calls from Python add to any run.
  Result<double> call_seconds();
  // Returns inferences a second of all streams, over that time.
  Result<double> throughput(double seconds);

 private:
  Peer() = default;
  Result<nlohmann::json> call(const nlohmann::json& command);

  std::string runtime_, version_;
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace collage::tool
