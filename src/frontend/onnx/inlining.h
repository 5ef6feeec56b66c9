// What functions of a model and graphs inside its nodes are inlined with: the functions by name,
// and names for the values inside that meet no other name. A value inside gets the name
//
//   FIRST OUTPUT OF THE NODE  MARK  COPY  NAME INSIDE        "y#t", of a loop's third trip "y#2/t"
//
// Outputs are defined once, and no name in the file holds the mark, so each such name says where
// its value comes from, and neither the caller's names nor those of graphs further inside can be
// it.
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
  // The model outlives this.
  explicit Inlining(const ::onnx::ModelProto& model);

  // Null where the node calls none of the model's functions.
  const ::onnx::FunctionProto* function_of(const ::onnx::NodeProto& node) const;
  // What names of values inside the node start with; it has an output with a name.
  std::string inner_prefix(const ::onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, const ::onnx::FunctionProto*>
      functions_;
  std::string mark_;
};

// Names that the graph itself defines: its inputs, initializers and what its nodes give.
std::unordered_set<std::string> own_names(const ::onnx::GraphProto& graph);

using Rename = std::function<void(std::string* name)>;

// Renames the values that a node reads and gives, those that graphs inside its attributes take from
// outside included. What these define keeps its name, or has it prefixed.
void rename_values(::onnx::NodeProto& node, const Rename& rename,
                   const std::string& inner_prefix = "");

}  // namespace collage::frontend
