// Imports the nodes of a graph, in order, as far as shapes and values are known. A node is late if
// it cannot be imported before the model runs: control flow on computed conditions, operators whose
// results' shapes depend on values, nodes that need the values of computed tensors, and readers of
// such nodes.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/folding.h"
#include "frontend/onnx/functions.h"
#include "frontend/onnx/narrow_values.h"
#include "frontend/onnx/tensor_data.h"
#include "ir/expr.h"

namespace collage::frontend {

enum class Lateness {
  kNever,        // cannot be imported whatever is known
  kRun,          // the host runs it: control flow, an operator of data-dependent shapes
  kNeedsValues,  // of `wanted`
  kWaits,        // for another late node
};

struct LateNode {
  FlatNode node;
  Lateness why = Lateness::kWaits;
  std::string reason;               // for people; empty where it waits
  std::vector<std::string> wanted;  // inputs whose values it needs
};

struct GraphImportOptions {
  // Returns the initializer of that name, or null if there is none.
  std::function<Result<Expr>(const std::string& name)> initializer;
  // True if late nodes are imported again later: nodes whose results jump with the last digits of
  // their inputs (TopK) wait until these are inputs.
  bool in_stages = false;
  // Nodes that the host runs; their converters, if there are any, are for constants alone.
  std::function<bool(const ::onnx::NodeProto& node)> runs_on_host;
  // What inputs' shapes decide is computed by calls, as far as it is not in types and attributes,
  // for nodes that are imported for several sizes.
  bool keeps_calls = false;
  // With it: sizes that a run counts are symbols of these; null: there may be none.
  RunSizes* run_sizes = nullptr;
};

class GraphImporter {
 public:
  GraphImporter(const Inlining& inlining, TensorData& data, GraphImportOptions options)
      : inlining_(inlining),
        data_(data),
        options_(std::move(options)),
        folder_(options_.keeps_calls, options_.run_sizes) {}

  void define(const std::string& name, Expr value) { values_[name] = std::move(value); }
  // Counts `name` as used in the end; values without further uses are released, so that weights
  // used up by folding leave the memory.
  void keep(const std::string& name) { ++uses_[name]; }
  // Nodes must follow their inputs. Fails for malformed nodes; the others are imported or late.
  Status import(const std::vector<FlatNode>& nodes);
  // Returns null if it is late. kBadModel: it is not defined.
  Result<Expr> value(const std::string& name);
  // Returns whether it is defined, as an initializer or as a value.
  bool is_late(const std::string& name) const;

  // Narrow types: the caller declares those of inputs and initializers; others follow.
  NarrowValues& narrow() { return narrow_; }

  const std::vector<LateNode>& late() const { return late_; }
  size_t node_count() const { return node_count_; }
  // Values that imported nodes read.
  const std::unordered_set<std::string>& values_read() const { return read_; }

  // Returns the importer of a graph inside a node, which asks `find` for values of this one.
  GraphImporter inner(std::function<Result<Expr>(const std::string& name)> find) const;

  // For control flow (control_flow.h).
  const Inlining& inlining() const { return inlining_; }
  TensorData& data() { return data_; }
  Folder& folder() { return folder_; }
  bool is_for_several_sizes() const { return options_.keeps_calls; }
  void add_late(const FlatNode& node, Lateness why, std::string reason,
                std::vector<std::string> wanted = {});
  // Imports the nodes of a graph that replace a node.
  Status import_inlined(const std::vector<FlatNode>& nodes,
                        const std::vector<std::string>& outputs);
  // Makes an output of the node the value of that name, which may be late.
  Status rename(const std::string& from, const std::string& to, const FlatNode& node);

 private:
  Status import_node(const FlatNode& node);
  Result<std::vector<Expr>> convert(const FlatNode& node, std::vector<Expr> inputs,
                                    std::vector<Expr>& wanted);
  bool waits(const FlatNode& node) const;
  void release(const std::string& name);

  const Inlining& inlining_;
  TensorData& data_;
  GraphImportOptions options_;
  Folder folder_;
  std::unordered_map<std::string, Expr> values_;  // null: late
  std::unordered_map<std::string, size_t> uses_;
  std::unordered_set<std::string> read_;
  NarrowValues narrow_;
  std::vector<LateNode> late_;
  size_t node_count_ = 0;
};

}  // namespace collage::frontend
