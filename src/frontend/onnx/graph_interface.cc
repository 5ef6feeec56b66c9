#include "frontend/onnx/graph_interface.h"

#include <unordered_set>

#include "base/machine_limits.h"
#include "frontend/onnx/node_context.h"

namespace collage::frontend {

Result<Initializers> check_initializers(::onnx::GraphProto& graph, TensorData& data,
                                        uint64_t max_bytes) {
  const uint64_t limit = max_bytes != 0 ? max_bytes : available_memory() / 10 * 8;
  uint64_t total = 0;
  Initializers result;
  for (::onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.name().empty()) return bad_model("an initializer has no name");
    if (!result.emplace(tensor.name(), &tensor).second)
      return bad_model("initializer '{}' is defined twice", tensor.name());
    Result<uint64_t> bytes = data.check(tensor);
    if (!bytes)
      return std::move(bytes).status().with_context(fmt::format("initializer '{}'", tensor.name()));
    total += *bytes;
    if (total > limit)
      return bad_model("initializers of more than {} bytes, the limit is {}", total, limit);
  }
  if (graph.sparse_initializer_size() > 0)
    return unsupported("sparse initializer '{}'", graph.sparse_initializer(0).values().name());
  return result;
}

Result<std::vector<const ::onnx::ValueInfoProto*>> inputs_of(const ::onnx::GraphProto& graph,
                                                             const Initializers& initializers) {
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  std::unordered_set<std::string> names;
  for (const auto& input : graph.input()) {
    if (input.name().empty()) return bad_model("an input has no name");
    if (!names.insert(input.name()).second)
      return bad_model("input '{}' is defined twice", input.name());
    // Before IR version 4 every initializer was listed as an input too.
    if (initializers.count(input.name()) == 0) inputs.push_back(&input);
  }
  return inputs;
}

Status check_output(const ::onnx::ValueInfoProto& output, const Expr& value,
                    const NarrowValues& narrow) {
  const int32_t declared = output.type().tensor_type().elem_type();
  if (declared == 0) return {};
  const Result<DType> dtype = carrier_from_onnx(declared);
  if (dtype && *dtype == dtype_of(value) && narrow.is_of(output.name(), declared)) return {};
  return bad_model("output '{}' is declared as {}, but computed as {}", output.name(),
                   onnx_type_name(declared), dtype_name(dtype_of(value)));
}

}  // namespace collage::frontend
