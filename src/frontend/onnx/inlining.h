// Inlines functions of a model and graphs inside its nodes: the functions by name, and unique names
// for the values inside. A value inside gets the name
//
//   FIRST OUTPUT OF THE NODE  MARK  COPY  NAME INSIDE        "y#t", of a loop's third trip "y#2/t"
//
// Outputs are defined once, and no name in the file holds the mark, so each such name is unique.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_set>

namespace collage::frontend {

class Inlining {
 public:
  // `model` must outlive this.
  explicit Inlining(const ::onnx::ModelProto& model);

  // Returns null unless the node calls one of the model's functions.
  const ::onnx::FunctionProto* function_of(const ::onnx::NodeProto& node) const;
  // Returns the prefix of the names of values inside the node; it has an output with a name.
  std::string inner_prefix(const ::onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, const ::onnx::FunctionProto*>
      functions_;
  std::string mark_;
};

// Returns the names that the graph itself defines: its inputs, initializers and outputs of its
// nodes.
std::unordered_set<std::string> own_names(const ::onnx::GraphProto& graph);

using Rename = std::function<void(std::string* name)>;

// Renames the values that a node reads and writes, including those that graphs inside its
// attributes take from outside. Names that these define stay, or get a prefix.
void rename_values(::onnx::NodeProto& node, const Rename& rename,
                   const std::string& inner_prefix = "");

}  // namespace collage::frontend
