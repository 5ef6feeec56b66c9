#include "rivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/statistics.h"
#include "frontend/onnx/importer.h"
#include "options.h"

namespace collage::tool {

namespace fs = std::filesystem;

std::vector<Shape> FileInputs::shapes() const {
  std::vector<Shape> shapes;
  for (const TensorInfo& info : infos) shapes.push_back(info.shape);
  return shapes;
}

Result<FileInputs> file_inputs(const std::string& file, std::vector<TensorInfo> infos,
                               std::vector<Tensor> tensors,
                               const std::map<std::string, Tensor>& constants) {
  FileInputs all{std::move(infos), std::move(tensors)};
  if (constants.empty()) return all;
  const ModelSummary summary = TRY(inspect_onnx(file));
  for (size_t i = 0; i < summary.inputs.size(); ++i) {
    const auto fixed = constants.find(summary.inputs[i].name);
    if (fixed == constants.end()) continue;
    const Tensor& value = fixed->second;
    const auto place = static_cast<ptrdiff_t>(i);
    all.infos.insert(all.infos.begin() + place, {fixed->first, value.shape(), value.dtype()});
    all.tensors.insert(all.tensors.begin() + place, value);
  }
  return all;
}

Result<RivalOutputs> rival_outputs(const std::string& runtime, const std::string& file,
                                   const FileInputs& inputs, size_t outputs, int threads) {
  Rivals rivals = TRY(Rivals::start(file, inputs, {.runtimes = {runtime}, .threads = threads}));
  TRY(rivals.run(0, 0, 1));
  return RivalOutputs{rivals.version(0), TRY(rivals.outputs(0, outputs))};
}

Result<Rivals> Rivals::start(const std::string& file, const FileInputs& inputs,
                             const RivalOptions& options) {
  Rivals rivals;
  if (options.runtimes.empty()) return rivals;
  rivals.held_to_ = options.held_to;
  rivals.inputs_ = options.inputs;
  std::error_code code;
  rivals.scratch_ = std::make_unique<ScratchFolder>(
      TRY(ScratchFolder::create(fs::temp_directory_path(code), "collage-bench-")
              .with_context("inputs of other runtimes")));
  const std::vector<Shape> shapes = inputs.shapes();
  TRY(save_tensors(rivals.scratch_->path() / "inputs", inputs.infos, inputs.tensors));
  for (const std::string& runtime : options.runtimes) {
    TRY(rivals.add(runtime, "f32", file, shapes, options));
    if (options.max_error > 0 && runtime == "openvino")
      TRY(rivals.add(runtime, "bf16", file, shapes, options));
  }
  return rivals;
}

Status Rivals::add(const std::string& runtime, const std::string& precision,
                   const std::string& file, const std::vector<Shape>& shapes,
                   const RivalOptions& options) {
  peers_.push_back(
      TRY(Peer::start(runtime, file, shapes, options.threads, precision, options.streams)));
  TRY(peers_.back()->set_inputs(scratch_->path() / "inputs"));
  exact_.push_back(precision == "f32");
  names_.push_back(exact_.back() ? runtime : runtime + " " + precision);
  return {};
}

Result<std::vector<Tensor>> Rivals::outputs(size_t rival, size_t count) {
  const std::string folder = scratch_->path() / ("outputs_" + std::to_string(rival));
  TRY(peers_[rival]->save_outputs(folder));
  return load_tensors(names_[rival], folder, count);
}

// Both compute in floats: where their outputs are further apart than usual, what roundings move
// there is allowed too. Which neighbours quantised tensors take is in the tolerance already.
Result<Difference> Rivals::compare(size_t output, const Tensor& own, const Tensor& theirs) {
  const Difference plain = compare_tensors(own, theirs, held_to_.of_peers);
  if (plain.within || plain.judged == 0 || !held_to_.function || held_to_.of_peers.share > 0)
    return plain;
  if (!errors_) errors_.emplace(TRY(RoundingErrors::of(held_to_.function, inputs_)));
  return errors_->compare(output, own, theirs, rounding::kWinograd4, held_to_.of_peers);
}

Result<RunFacts::OutputDifference> Rivals::difference(size_t rival,
                                                      const std::vector<Tensor>& outputs) {
  const std::vector<Tensor> theirs = TRY(this->outputs(rival, outputs.size()));
  RunFacts::OutputDifference all;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Difference one = TRY(compare(i, outputs[i], theirs[i]));
    all.max_abs = std::max(all.max_abs, one.max_abs);
    all.max_rel = std::max(all.max_rel, one.max_rel);
    all.within = all.within && one.within;
    if (!one.within && all.reason.empty()) all.reason = fmt::format("output {} {}", i, one.reason);
  }
  if (!all.within && exact_[rival]) differing_ += (differing_.empty() ? "" : ", ") + names_[rival];
  return all;
}

Status Rivals::judge(size_t rival, const std::vector<double>& own, std::vector<double> theirs,
                     const std::vector<Tensor>& outputs, RunFacts::Peer& peer) {
  peer.version = peers_[rival]->version();
  peer.difference = TRY(difference(rival, outputs));
  if (!peer.difference->within) return {};
  peer.speed_up = speed_up(own, theirs);
  peer.call_seconds = TRY(peers_[rival]->call_seconds());
  for (double& median : theirs) median = std::max(0.0, median - peer.call_seconds);
  peer.speed_up_without_call = speed_up(own, theirs);
  return {};
}

Status Rivals::agree() const {
  if (differing_.empty()) return {};
  return internal_error("--compare: outputs differ too much for a comparison from those of {}",
                        differing_);
}

namespace {

// "1.24x (1.20 to 1.29 in 95%, 11 turns), 1.21x without the 0.003 ms that …".
std::string ratio_text(const RunFacts::Peer& peer) {
  return fmt::format("{}, {:.2f}x without the {:.3f} ms that calling it from Python takes at most",
                     to_text(*peer.speed_up), peer.speed_up_without_call->ratio,
                     1e3 * peer.call_seconds);
}

}  // namespace

std::string rivals_text(const RunFacts& facts, const Rivals& rivals) {
  std::string text;
  const RunFacts::Peer* fastest = nullptr;
  for (size_t i = 0; i < rivals.size(); ++i) {
    const RunFacts::Peer& peer = facts.peers.at(rivals.name(i));
    text += fmt::format("over {} {}", rivals.name(i),
                        peer.difference->within ? ratio_text(peer) : "no ratio");
    text += fmt::format("; outputs differ by {:.3g} at most, {:.3g} of the largest value",
                        peer.difference->max_abs, peer.difference->max_rel);
    if (!peer.difference->within) text += ", which is too much: " + peer.difference->reason;
    text += "\n";
    if (!peer.difference->within) continue;
    if (fastest == nullptr || median(peer.samples) < median(fastest->samples)) fastest = &peer;
  }
  if (fastest == nullptr) return text;
  return text + fmt::format("speed-up over the faster of them: {}\n", to_text(*fastest->speed_up));
}

}  // namespace collage::tool
