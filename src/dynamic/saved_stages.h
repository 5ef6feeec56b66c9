// A program that runs in stages as a file: the model, the options it was compiled for, and the
// plans of the stages that were compiled so far, each by what it computes (stage_key). Loading
// imports the model anew; a stage that the file holds is loaded, any other is compiled as without a
// file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "artifact/artifact_file.h"
#include "artifact/write_artifact.h"
#include "base/result.h"
#include "runtime/plan.h"

namespace collage {

struct DynamicOptions;
namespace internal {
struct DynamicProgram;
}

class SavedStages {
 public:
  // kUnavailable and kBadModel as of load_artifact; kUsage: the file holds another program. Sets
  // those of `options` that the program was compiled with.
  static Result<std::shared_ptr<SavedStages>> load(std::shared_ptr<ArtifactFile> file,
                                                   DynamicOptions& options);

  // The model as an ONNX file.
  Result<SharedBytes> model() const { return file_->entry(kModelEntry); }
  int threads() const { return file_->threads(); }
  // Returns null if the file holds no such stage.
  Result<std::shared_ptr<const Plan>> find(const std::string& key);

 private:
  explicit SavedStages(std::shared_ptr<ArtifactFile> file) : file_(std::move(file)) {}

  const std::shared_ptr<ArtifactFile> file_;
  std::map<std::string, std::string> entries_;  // of plans, by the stages' keys
};

// kUnsupported: a kernel cannot be saved, or the model is too large for one file of ONNX.
Status write_artifact(const std::filesystem::path& path, internal::DynamicProgram& program,
                      const PlanFacts& facts);

}  // namespace collage
