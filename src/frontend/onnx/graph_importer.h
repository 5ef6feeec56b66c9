// Imports the nodes of a graph, in order, as far as shapes and values are known. What is not known
// before the model runs is late: control flow on computed conditions, operators whose results'
// shapes depend on values, nodes that need the values of computed tensors, and all that reads
// results of such nodes.
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
  // The initializer of that name, or null where there is none.
  std::function<Result<Expr>(const std::string& name)> initializer;
  // Nodes are imported again, so the tensors in their attributes stay; and those whose results jump
  // with the last digits of what they read (TopK) wait until that is an input.
  bool in_stages = false;
  // Nodes that the host runs; a converter, where there is one, is for constants alone.
  std::function<bool(const ::onnx::NodeProto& node)> runs_on_host;
};

class GraphImporter {
 public:
  GraphImporter(const Inlining& inlining, TensorData& data, GraphImportOptions options)
      : inlining_(inlining), data_(data), options_(std::move(options)) {}

  void define(const std::string& name, Expr value) { values_[name] = std::move(value); }
  // Somebody reads `name` in the end; values that nobody reads any more go, so that weights used
  // up by folding leave the memory.
  void keep(const std::string& name) { ++uses_[name]; }
  // Inputs of a node come before it. Fails for malformed nodes; the rest is done or late.
  Status import(const std::vector<FlatNode>& nodes);
  // Null where it is late. kBadModel where nobody defines it.
  Result<Expr> value(const std::string& name);
  // Whether anybody has defined it, as an initializer or as a value.
  bool is_late(const std::string& name) const;

  // Who declares inputs and initializers of narrow types; the rest is learned.
  NarrowValues& narrow() { return narrow_; }

  const std::vector<LateNode>& late() const { return late_; }
  size_t node_count() const { return node_count_; }
  // Values that imported nodes read.
  const std::unordered_set<std::string>& values_read() const { return read_; }

  // What control flow is built with (control_flow.h).
  const Inlining& inlining() const { return inlining_; }
  TensorData& data() { return data_; }
  Folder& folder() { return folder_; }
  void add_late(const FlatNode& node, Lateness why, std::string reason,
                std::vector<std::string> wanted = {});
  // Imports the nodes of a graph inside a node that takes the node's place.
  Status import_inlined(const std::vector<FlatNode>& nodes,
                        const std::vector<std::string>& outputs);
  // An output of the node is the value of that name, which may be late.
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
