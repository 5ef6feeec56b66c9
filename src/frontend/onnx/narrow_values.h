// Which values of a model are of narrow types (narrow_types.h), by name: their tensors do not tell.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <string>
#include <unordered_map>

#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/node_context.h"

namespace collage::frontend {

class NarrowValues {
 public:
  // An input or initializer of that element type.
  void declare(const std::string& name, int32_t data_type);
  // Tells the converter of a node about its inputs. kUnsupported where it would compute with
  // numbers that it does not know to be narrow.
  Status before(const ::onnx::NodeProto& node, NodeContext& context) const;
  // Learns of the node's outputs.
  void after(const ::onnx::NodeProto& node, const NodeContext& context);
  // Whether a value is of that type, as far as narrow ones are concerned.
  bool is_of(const std::string& name, int32_t data_type) const {
    return find(name) == narrow_type(data_type);
  }

 private:
  const NarrowType* find(const std::string& name) const;

  std::unordered_map<std::string, const NarrowType*> types_;
};

}  // namespace collage::frontend
