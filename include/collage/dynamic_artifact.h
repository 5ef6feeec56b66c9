// Dynamic programs as files (DynamicProgram::save): the specialisations that were compiled, chosen
// by the shapes that come, and one set of weights. All of this is in libcollage_runtime.
//
//   collage::Result<collage::DynamicArtifact> program =
//   collage::DynamicArtifact::load("gpt2.collage"); collage::Result<collage::DynamicContext>
//   context = program->make_context();  // one a sequence
//   collage::Result<std::vector<collage::Tensor>> outputs = context->run({tokens, mask});
#pragma once

#include <collage/context.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace collage {

namespace internal {
struct DynamicArtifactImpl;
struct DynamicContextImpl;
}  // namespace internal

// Memory for intermediate results of each specialisation that it ran, and its own states. Movable.
// Any thread may use it, one at a time; different contexts run at once.
class DynamicContext {
 public:
  // Inputs in the order of inputs(), of any shapes that fit the dimensions' names (kBadModel
  // otherwise) and that a specialisation serves, padded to buckets where there are some
  // (kUnavailable otherwise). A specialisation's code is loaded when it is first run.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // States become empty.
  void reset();

  explicit DynamicContext(std::unique_ptr<internal::DynamicContextImpl> impl);
  DynamicContext(DynamicContext&&) noexcept;
  DynamicContext& operator=(DynamicContext&&) noexcept;
  ~DynamicContext();

 private:
  std::unique_ptr<internal::DynamicContextImpl> impl_;
};

// Cheap to copy (shared); any thread may use it.
class DynamicArtifact {
 public:
  // Errors and `threads` as Artifact::load's; kUsage for a program of fixed shapes.
  static Result<DynamicArtifact> load(const std::filesystem::path& path, int threads = 0);
  // From memory. It is copied unless it begins on a multiple of 64 bytes and `owner` keeps it.
  static Result<DynamicArtifact> load(const void* data, size_t bytes,
                                      std::shared_ptr<const void> owner = nullptr);
  // As Artifact::load_signed.
  static Result<DynamicArtifact> load_signed(const std::filesystem::path& path,
                                             const std::string& public_key, int threads = 0);
  static Result<DynamicArtifact> load_signed(const void* data, size_t bytes,
                                             const std::string& public_key,
                                             std::shared_ptr<const void> owner = nullptr);

  const std::vector<DynamicTensorInfo>& inputs() const;  // without states
  const std::vector<DynamicTensorInfo>& outputs() const;
  // The shapes that each serves: "mask (1, 64), tokens (1, 64)".
  std::vector<std::string> specialisations() const;
  int threads() const;  // that each context computes with
  Result<DynamicContext> make_context() const;

  explicit DynamicArtifact(std::shared_ptr<internal::DynamicArtifactImpl> impl)
      : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<internal::DynamicArtifactImpl> impl_;
};

}  // namespace collage
