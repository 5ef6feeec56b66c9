#include "dynamic/host/host_operators.h"

#include <algorithm>

#include "dynamic/host/kernels.h"
#include "frontend/onnx/model_file.h"

namespace collage::dynamic {

namespace {

struct Row {
  std::string_view domain;  // "" for ONNX's own
  std::string_view op;
  int64_t since;  // the first version of its domain that has it
  size_t min_inputs, max_inputs;
  int max_outputs;
  std::vector<DType> dtypes;  // of the inputs in order, any where the list ends
  HostKernel run;
};

const std::vector<Row>& rows() {
  constexpr auto kFloat = DType::kFloat32;
  static const auto* table = new std::vector<Row>{
      {"", "NonZero", 9, 1, 1, 1, {}, run_non_zero},
      {"", "Compress", 9, 2, 2, 1, {}, run_compress},
      {"",
       "NonMaxSuppression",
       10,
       2,
       5,
       1,
       {kFloat, kFloat, DType::kInt64, kFloat, kFloat},
       run_non_max_suppression},
      {"", "Unique", 11, 1, 1, 4, {}, run_unique},
      {"com.microsoft", "Unique", 1, 1, 1, 3, {kFloat}, run_microsoft_unique},
  };
  return *table;
}

const Row* find_row(std::string_view domain, std::string_view op) {
  if (frontend::is_standard_domain(std::string(domain))) domain = "";
  const auto row = std::find_if(rows().begin(), rows().end(), [&](const Row& each) {
    return each.domain == domain && each.op == op;
  });
  return row == rows().end() ? nullptr : &*row;
}

Status check_inputs(const Row& row, const Tensors& inputs) {
  if (inputs.size() < row.min_inputs || inputs.size() > row.max_inputs)
    return bad_model("{} inputs, {} to {} are allowed", inputs.size(), row.min_inputs,
                     row.max_inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      if (i < row.min_inputs) return bad_model("input {} is missing", i);
    } else if (i < row.dtypes.size() && inputs[i].dtype() != row.dtypes[i]) {
      return bad_model("input {} is {}, not {}", i, dtype_name(inputs[i].dtype()),
                       dtype_name(row.dtypes[i]));
    }
  }
  return {};
}

Result<Tensors> run_row(const Row& row, const ::onnx::NodeProto& node, int64_t opset,
                        const Tensors& inputs) {
  if (opset < row.since)
    return bad_model("the operator is new in version {}, the model is of {}", row.since, opset);
  if (node.output_size() > row.max_outputs)
    return bad_model("{} outputs, {} at most are allowed", node.output_size(), row.max_outputs);
  TRY(check_inputs(row, inputs));
  Tensors results = TRY(row.run(frontend::NodeAttributes(node), inputs));
  results.resize(static_cast<size_t>(node.output_size()));
  return results;
}

}  // namespace

bool is_host_operator(std::string_view domain, std::string_view op) {
  return find_row(domain, op) != nullptr;
}

Result<std::vector<Tensor>> run_host_operator(const ::onnx::NodeProto& node, int64_t opset,
                                              const std::vector<Tensor>& inputs) {
  const Row* row = find_row(node.domain(), node.op_type());
  if (row == nullptr) return internal_error("{} is no operator of the host", node.op_type());
  return run_row(*row, node, opset, inputs)
      .with_context(fmt::format("node '{}' ({})", node.name(), node.op_type()));
}

}  // namespace collage::dynamic
