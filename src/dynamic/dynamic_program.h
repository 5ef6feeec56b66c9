// The implementation of a Program that is compiled for the shapes that come (collage/dynamic.h).
#pragma once

#include <collage/dynamic.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artifact/bucketing/bucketed_run.h"
#include "artifact/program_impl.h"
#include "base/result.h"
#include "dynamic/dynamic_graph.h"
#include "dynamic/parts_graph.h"
#include "dynamic/stage_program.h"

namespace collage {

namespace internal {

struct DynamicProgram : ProgramImpl {
  DynamicProgram();
  std::vector<SpecialisationInfo> specialisations() const override;
  Result<std::unique_ptr<ContextImpl>> make_context() const override;
  Status prepare(const std::vector<Tensor>& inputs) override;
  Status prepare_buckets() override;
  Status save(const std::filesystem::path& path, const std::string& signing_key) override;
  // As Program::run, by whoever holds `running`.
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs, bool keeps_states);

  std::string model;  // the file's name
  DynamicOptions options;
  StageContext context;
  BucketedInterface interface;
  States states;
  std::optional<DynamicGraph> graph;
  std::optional<PartsGraph> parts;  // in place of it, of a module that counts sizes
  mutable std::mutex running;
};

}  // namespace internal

// Returns the implementation of a program that Program::compile made of a file.
internal::DynamicProgram& dynamic_program(const Program& program);

// Returns seeded values for inputs that the model can take as far as its first stage shows.
// Dimensions come from `shapes` by the input's name, else from `sizes` by their own; kBadModel: one
// is unknown.
Result<TensorsByName> random_tensors(frontend::StageSource& model,
                                     const std::vector<TensorInfo>& inputs, const DimSizes& sizes,
                                     const std::map<std::string, Shape>& shapes, uint64_t seed);

// Returns the outputs of the whole model, computed by the reference, its operators by those of
// `like`.
Result<std::vector<Tensor>> run_reference(const StageContext& like, TensorsByName tensors);

}  // namespace collage
