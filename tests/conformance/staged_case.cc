#include "conformance/staged_case.h"

#include "dynamic/dynamic_graph.h"
#include "dynamic/host/host_operators.h"

namespace collage {

Result<std::vector<Tensor>> run_in_stages(const std::filesystem::path& model,
                                          const std::vector<Tensor>& inputs,
                                          const Compute& compute) {
  frontend::StagedModelOptions options;
  options.runs_on_host = [](const ::onnx::NodeProto& node) {
    return dynamic::is_host_operator(node.domain(), node.op_type());
  };
  StageContext context;
  context.model = TRY(frontend::StagedModel::open(model, std::move(options)));
  context.compute = compute;
  TensorsByName tensors;
  for (size_t i = 0; i < inputs.size() && i < context.model->inputs().size(); ++i)
    tensors[context.model->inputs()[i].name] = inputs[i];
  return DynamicGraph(context, context.model->whole(), "case").run(std::move(tensors));
}

}  // namespace collage
