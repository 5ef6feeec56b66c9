// The runtimes that `bench --compare` names: starts them on the program's own file, shapes and
// inputs, runs them in turns with it, and compares their outputs with the program's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/scratch_folder.h"
#include "peer.h"
#include "report/model_reference.h"
#include "report/report.h"
#include "verify/rounding_error.h"

namespace collage::tool {

// All inputs of a model's file, in its order.
struct FileInputs {
  std::vector<TensorInfo> infos;
  std::vector<Tensor> tensors;
  std::vector<Shape> shapes() const;
};
// `infos` and `tensors` are those that the model asks for, `constants` those that the file has and
// the model has not (LoadOptions).
Result<FileInputs> file_inputs(const std::string& file, std::vector<TensorInfo> infos,
                               std::vector<Tensor> tensors,
                               const std::map<std::string, Tensor>& constants);

// Outputs of another runtime for the file.
struct RivalOutputs {
  std::string version;
  std::vector<Tensor> outputs;
};
Result<RivalOutputs> rival_outputs(const std::string& runtime, const std::string& file,
                                   const FileInputs& inputs, size_t outputs, int threads);

struct RivalOptions {
  std::vector<std::string> runtimes;
  // What outputs may differ by (of_peers); with a function, which these are the inputs of, also by
  // what roundings move it.
  ModelReference held_to = {};
  std::vector<Tensor> inputs = {};
  int threads = 0;
  // Above 0: OpenVINO in bfloat16 too, whatever its errors are: whoever allows errors wants to know
  // what it does with them.
  double max_error = 0;
  // Above 0: in their modes of throughput, with so many inferences at a time, on all of the threads
  // together.
  int streams = 0;
};

class Rivals {
 public:
  static Result<Rivals> start(const std::string& file, const FileInputs& inputs,
                              const RivalOptions& options);
  bool none() const { return peers_.empty(); }
  size_t size() const { return peers_.size(); }
  const std::string& name(size_t rival) const { return names_[rival]; }
  // Returns the seconds of each run of a block.
  Result<std::vector<double>> run(size_t rival, int warm_ups, int runs) {
    return peers_[rival]->run(warm_ups, runs);
  }
  // Returns inferences a second of all streams, over that time.
  Result<double> throughput(size_t rival, double seconds) {
    return peers_[rival]->throughput(seconds);
  }
  // Compares the outputs of its latest run with these.
  Result<RunFacts::OutputDifference> difference(size_t rival, const std::vector<Tensor>& outputs);
  // Returns the outputs of its latest run.
  Result<std::vector<Tensor>> outputs(size_t rival, size_t count);
  // Records the result of turns with it: the medians of this program's blocks and of its own, and
  // this program's outputs.
  Status judge(size_t rival, const std::vector<double>& own, std::vector<double> theirs,
               const std::vector<Tensor>& outputs, RunFacts::Peer& peer);
  // Names the runtimes whose `difference` was too large. One that computes in a precision that was
  // not asked for ("openvino bf16") is no error.
  Status agree() const;
  const std::string& version(size_t rival) const { return peers_[rival]->version(); }

 private:
  Rivals() = default;
  Result<Difference> compare(size_t output, const Tensor& own, const Tensor& theirs);
  Status add(const std::string& runtime, const std::string& precision, const std::string& file,
             const std::vector<Shape>& shapes, const RivalOptions& options);

  std::unique_ptr<ScratchFolder> scratch_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::string> names_;  // "openvino", "openvino bf16"
  std::vector<bool> exact_;         // in the precision that the model has
  std::string differing_;           // their names
  ModelReference held_to_;
  std::vector<Tensor> inputs_;
  std::optional<RoundingErrors> errors_;  // once a difference asked for them
};

// Returns speed-up and difference of outputs, a line for each of them, and the speed-up over the
// fastest of those whose outputs agree.
std::string rivals_text(const RunFacts& facts, const Rivals& rivals);

}  // namespace collage::tool
