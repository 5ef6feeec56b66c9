// The implementation of DynamicProgram (collage/dynamic.h).
#pragma once

#include <collage/dynamic.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artifact/bucketing/bucketed_run.h"
#include "base/result.h"
#include "dynamic/dynamic_graph.h"
#include "dynamic/stage_program.h"

namespace collage {

namespace internal {

struct DynamicProgramImpl {
  std::string model;  // the file's name
  DynamicOptions options;
  StageContext context;
  BucketedInterface interface;
  States states;
  std::optional<DynamicGraph> graph;
  std::mutex running;
};

}  // namespace internal

// Returns seeded values for inputs that the model can take as far as its first stage shows.
// Dimensions come from `shapes` by the input's name, else from `sizes` by their own; kBadModel: one
// is unknown.
Result<TensorsByName> random_tensors(frontend::StagedModel& model,
                                     const std::vector<DynamicTensorInfo>& inputs,
                                     const DimSizes& sizes,
                                     const std::map<std::string, Shape>& shapes, uint64_t seed);

// Returns the outputs of the whole model, computed by the reference, its operators by those of
// `like`.
Result<std::vector<Tensor>> run_reference(const StageContext& like, TensorsByName tensors);

}  // namespace collage
