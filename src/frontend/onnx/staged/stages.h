// Imports a model in stages, for models whose shapes are not all known before they run. A stage is
// the part that can be imported from the shapes of the tensors that exist; after the caller ran it,
// more of the remaining (late) nodes can be imported:
//
//   RemainingGraph rest = model->whole();
//   ImportedStage stage = TRY(model->import(rest, tensors));   // tensors: the model's inputs
//   … run stage.module, add its results to the tensors …
//   … run those of stage.late that the host runs (NonZero, Loop) …
//   rest.nodes = the other late nodes; and again
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/staged/subgraphs.h"
#include "ir/module.h"

namespace collage::frontend {

using TensorsByName = std::map<std::string, Tensor>;

// What `output` has behind `input` along an axis: what a run adds to a state.
struct Increment {
  std::string input, output;
  size_t axis = 0;
  std::string name() const { return output + "/added"; }  // among the graph's outputs
};

struct RemainingGraph {
  std::vector<FlatNode> nodes;             // inputs first
  std::vector<std::string> outputs;        // values that are wanted in the end
  std::set<std::string> by_value;          // tensors whose contents decide shapes
  TensorsByName constants;                 // values that are the same in every run
  std::vector<Increment> increments;       // of a model without nodes
  std::vector<std::string> reads() const;  // by nodes and as outputs, sorted
};

struct ImportedStage {
  std::optional<Module> module;                // none: no node could be imported
  std::vector<std::string> inputs, outputs;    // of @main
  std::map<std::string, std::string> aliases;  // results that are an input under another name
  TensorsByName constants;                     // results that are the same in every run
  std::set<std::string> reads;                 // tensors that decided what was imported
  std::vector<LateNode> late;                  // in order
};

struct StagedModelOptions {
  // The file's content, if an artifact holds it (dynamic/saved_stages.h).
  std::string_view content;
  std::shared_ptr<const void> owner;              // of `content`
  uint64_t max_bytes = 0;                         // as in ImportOptions
  TensorsByName constants;                        // inputs fixed to a value
  std::vector<std::filesystem::path> data_roots;  // as in ImportOptions
  // Nodes that the host runs even if there is a converter.
  std::function<bool(const ::onnx::NodeProto& node)> runs_on_host;
};

// What a model is imported from as it runs. One without stages gives a whole module for the shapes
// of its inputs: it has no nodes, and no initializers beside the module.
class StageSource {
 public:
  virtual ~StageSource() = default;
  const std::vector<ModelInput>& inputs() const { return inputs_; }
  const std::vector<ModelInput>& outputs() const { return outputs_; }
  const RemainingGraph& whole() const { return whole_; }

  // Imports what `rest` computes as far as `tensors` tell: shapes of all, contents of those by
  // value. kUnsupported: nodes can never be imported; the message lists all.
  virtual Result<ImportedStage> import(const RemainingGraph& rest,
                                       const TensorsByName& tensors) = 0;
  virtual bool runs_on_host(const ::onnx::NodeProto&) const { return false; }
  // Returns the graph inside an attribute of a node; its initializers are its constants.
  virtual Result<RemainingGraph> graph_inside(const FlatNode& node, const std::string& attribute,
                                              std::vector<std::string>& inputs);
  virtual bool has_initializer(const std::string&) const { return false; }
  // kBadModel: it was released and the file has changed since.
  virtual Result<Tensor> initializer(const std::string& name);
  // Returns the model as one file of ONNX, external data included. kBadModel as above;
  // kUnsupported: it is larger than such a file may be.
  virtual Result<std::string> content();
  // Releases the memory of initializers; a later use reads them again. Constants made of them stay.
  virtual void forget_initializers() {}

 protected:
  std::vector<ModelInput> inputs_, outputs_;
  RemainingGraph whole_;
};

class StagedModel : public StageSource {
 public:
  static Result<std::shared_ptr<StagedModel>> open(const std::filesystem::path& file,
                                                   StagedModelOptions options);

  bool runs_on_host(const ::onnx::NodeProto& node) const override {
    return options_.runs_on_host != nullptr && options_.runs_on_host(node);
  }
  Result<ImportedStage> import(const RemainingGraph& rest, const TensorsByName& tensors) override;
  // Imports all of it as one function of inputs of these types, which holds for others of their
  // ranks too (GraphImportOptions::keeps_calls). kUnsupported: a part needs values of a run.
  // `sizes`: those that a run counts.
  Result<Module> import_whole(const std::vector<TensorType>& inputs, RunSizes& sizes);
  Result<RemainingGraph> graph_inside(const FlatNode& node, const std::string& attribute,
                                      std::vector<std::string>& inputs) override;
  bool has_initializer(const std::string& name) const override { return names_.count(name) != 0; }
  Result<Tensor> initializer(const std::string& name) override;
  Result<std::string> content() override;
  void forget_initializers() override;

 private:
  StagedModel(std::filesystem::path file, StagedModelOptions options)
      : file_(std::move(file)), options_(std::move(options)), data_(file_, options_.data_roots) {}
  Status read();
  GraphImporter importer_of(GraphImportOptions options);
  Result<std::unique_ptr<::onnx::ModelProto>> read_message() const;
  // Reads the message again, for released initializers.
  Result<std::unique_ptr<::onnx::ModelProto>> read_message_again() const;
  Status changed() const;
  Status read_initializers(::onnx::GraphProto& graph);

  const std::filesystem::path file_;
  std::filesystem::file_time_type written_;  // the file, when it was read

  StagedModelOptions options_;
  TensorData data_;
  std::unique_ptr<::onnx::ModelProto> model_;
  std::optional<Inlining> inlining_;       // of `model_`
  std::unordered_set<std::string> names_;  // of initializers that nodes read, and of constants
  std::unordered_map<std::string, Tensor> initializers_, constants_;
  std::map<std::string, int32_t> types_;  // of initializers and inputs, as the model has them
};

}  // namespace collage::frontend
