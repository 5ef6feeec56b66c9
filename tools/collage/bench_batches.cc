// A batch size as a flag of the model's own: `--dim NAME=N` where its inputs' first dimension has a
// name, else `--shapes INPUT=Nx…`.

#include <algorithm>

#include "bench.h"
#include "frontend/onnx/importer.h"

namespace collage::tool {

namespace {

Status fixed_batch(const BenchOptions& options, const ModelSummary& summary) {
  std::string inputs;
  for (const ModelInput& input : summary.inputs) {
    inputs += (inputs.empty() ? "" : ", ") + input.name + " (";
    for (size_t d = 0; d < input.dims.size(); ++d) inputs += (d == 0 ? "" : ", ") + input.dims[d];
    inputs += ")";
  }
  return usage_error(
      "--batch: {} fixes the first dimension of its inputs: {}; export it with a dynamic batch",
      options.model, inputs.empty() ? "it has none" : inputs);
}

bool is_given(const std::vector<std::string>& assignments, const std::string& name) {
  return std::any_of(assignments.begin(), assignments.end(),
                     [&](const std::string& text) { return text.rfind(name + "=", 0) == 0; });
}

}  // namespace

Result<BenchOptions> with_batch(const BenchOptions& options, int64_t batch) {
  if (std::filesystem::path(options.model).extension() == ".relay")
    return usage_error("--batch: {}: shapes are part of Relay text and cannot be given",
                       options.model);
  const ModelSummary summary = TRY(inspect_onnx(options.model));
  const LoadOptions given = TRY(load_options(options));
  BenchOptions result = options;
  std::string name;  // of the dimension, where it has one
  bool found = false;
  for (const ModelInput& input : summary.inputs) {
    if (input.dims.empty() || !is_open_dimension(input.dims[0])) continue;
    if (given.constants.count(input.name) != 0) continue;
    if (is_given(options.shapes, input.name))
      return usage_error(
          "--batch and --shapes {} exclude each other: use --dim for the other "
          "dimensions",
          input.name);
    if (is_named_dimension(input.dims[0])) {
      if (!name.empty()) continue;  // the same, or one that --dim has to give
      name = input.dims[0];
      if (is_given(options.dims, name))
        return usage_error("--batch and --dim {} exclude each other", name);
      result.dims.push_back(name + "=" + std::to_string(batch));
      found = true;
      continue;
    }
    std::string shape = std::to_string(batch);
    for (size_t d = 1; d < input.dims.size(); ++d) {
      const std::string& dim = input.dims[d];
      const auto known = given.dims.find(dim);
      if (is_open_dimension(dim) && known == given.dims.end())
        return usage_error(
            "--batch: besides the first, dimension {} of input '{}' is open: {}", d, input.name,
            is_named_dimension(dim) ? "give it with --dim " + dim + "=N" : "it has no name");
      shape += "x" + (is_open_dimension(dim) ? std::to_string(known->second) : dim);
    }
    result.shapes.push_back(input.name + "=" + shape);
    found = true;
  }
  if (!found) return fixed_batch(options, summary);
  return result;
}

}  // namespace collage::tool
