// The narrow types (narrow_types.h) of a model's values, by name: tensors do not have them.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <string>
#include <unordered_map>

#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/node_context.h"

namespace collage::frontend {

class NarrowValues {
 public:
  // Declares an input or initializer of that element type.
  void declare(const std::string& name, int32_t data_type);
  // Passes the types of a node's inputs to its converter. kUnsupported: the converter would compute
  // with numbers that it does not know to be narrow.
  Status before(const ::onnx::NodeProto& node, NodeContext& context) const;
  // Records the types of the node's outputs.
  void after(const ::onnx::NodeProto& node, const NodeContext& context);
  // Returns whether a value is of that type, as far as narrow ones are concerned.
  bool is_of(const std::string& name, int32_t data_type) const {
    return find(name) == narrow_type(data_type);
  }

 private:
  const NarrowType* find(const std::string& name) const;

  std::unordered_map<std::string, const NarrowType*> types_;
};

}  // namespace collage::frontend
