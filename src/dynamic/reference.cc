#include "dynamic/dynamic_program.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "tensor_program/extent.h"

namespace collage {

namespace {

// Of a sum of names, which need not be those of symbols, or of a term over symbols.
std::optional<int64_t> extent_of(const std::string& dim, const DimSizes& sizes) {
  if (const std::optional<DimSum> sum = DimSum::parse(dim)) {
    int64_t extent = 0;
    for (const DimSum::Term& term : sum->terms) {
      if (!term.name.empty() && sizes.count(term.name) == 0) return std::nullopt;
      extent += term.name.empty() ? term.number : sizes.at(term.name);
    }
    return extent;
  }
  tensor_program::TokenReader tokens(dim);
  const Result<tensor_program::Term> term = tensor_program::parse_extent(tokens);
  return term.ok() ? tensor_program::value_of(*term, sizes) : std::nullopt;
}

Result<Shape> shape_of(const TensorInfo& input, const DimSizes& sizes) {
  if (!input.has_shape) return bad_model("input '{}' has no shape: give one", input.name);
  Shape shape;
  for (const std::string& dim : input.dims) {
    const std::optional<int64_t> extent = extent_of(dim, sizes);
    if (!extent)
      return bad_model("input '{}': dimension '{}' has no value: give one", input.name, dim);
    shape.push_back(*extent);
  }
  return shape;
}

}  // namespace

Result<TensorsByName> random_tensors(frontend::StageSource& model,
                                     const std::vector<TensorInfo>& inputs, const DimSizes& sizes,
                                     const std::map<std::string, Shape>& shapes, uint64_t seed) {
  TensorsByName tensors;
  uint64_t own = seed;
  for (const TensorInfo& input : inputs) {
    const auto given = shapes.find(input.name);
    const Shape shape = given != shapes.end() ? given->second : TRY(shape_of(input, sizes));
    TRY(checked_num_elements(shape));
    tensors[input.name] = random_tensor({shape, input.dtype}, ++own, {0, 1});
  }
  const frontend::ImportedStage stage = TRY(model.import(model.whole(), tensors));
  if (!stage.module) return tensors;
  const std::vector<Tensor> fitting = random_inputs(stage.module->main(), seed);
  for (size_t i = 0; i < fitting.size(); ++i) tensors[stage.inputs[i]] = fitting[i];
  return tensors;
}

Result<std::vector<Tensor>> run_reference(const StageContext& like, TensorsByName tensors) {
  StageContext context;
  context.model = like.model;
  context.operators = like.operators;
  context.compute = [](const Module& stage, const std::vector<Tensor>& inputs) {
    return interpret(stage.main(), inputs);
  };
  return DynamicGraph(context, like.model->whole(), "reference").run(std::move(tensors));
}

}  // namespace collage
