// The implementations of Program and Context (collage/program.h): a program of fixed shapes is a
// plan; one of several shapes is in specialised_program.h; in libcollage there is one that is
// compiled for the shapes that come (dynamic/dynamic_program.h).
#pragma once

#include <collage/program.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "artifact/artifact_file.h"
#include "runtime/executor.h"
#include "runtime/of_process.h"

namespace collage {

namespace internal {

struct ContextImpl {
  virtual ~ContextImpl() = default;
  // As Context::run.
  virtual Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) = 0;
  virtual void reset() {}
};

struct ProgramImpl {
  virtual ~ProgramImpl() = default;
  virtual std::vector<SpecialisationInfo> specialisations() const = 0;
  virtual Result<std::unique_ptr<ContextImpl>> make_context() const = 0;
  virtual Status prepare(const std::vector<Tensor>& inputs);
  virtual Status prepare_buckets();
  virtual Status save(const std::filesystem::path& path, const std::string& signing_key);
  // Returns the context of the program's own runs, and makes it for the first.
  Result<ContextImpl*> own_context();

  std::vector<TensorInfo> inputs, outputs;
  int threads = 1;

 protected:
  std::unique_ptr<ContextImpl> own_;

 private:
  OfProcess<std::mutex> making_;
};

struct FixedContext : ContextImpl {
  explicit FixedContext(Executor made) : executor(std::move(made)) {}
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override;
  Executor executor;
};

struct FixedProgram : ProgramImpl {
  FixedProgram(std::shared_ptr<const Plan> made, int threads);
  std::vector<SpecialisationInfo> specialisations() const override;
  Result<std::unique_ptr<ContextImpl>> make_context() const override;
  const std::shared_ptr<const Plan> plan;
};

}  // namespace internal

// Returns the program of a file. Errors and `threads` are those of Program::load.
Result<Program> open_program(Result<std::shared_ptr<ArtifactFile>> file, int threads = 0);

}  // namespace collage
