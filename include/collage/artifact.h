// Artifacts: compiled programs as files (`collage compile MODEL -o F.collage`), loaded without the
// compiler. All of this is in libcollage_runtime, which links none; libcollage has it too.
//
//   collage::Result<collage::Artifact> program = collage::Artifact::load("resnet50.collage");
//   collage::Result<collage::Context> context = program->make_context();   // one a thread
//   collage::Result<std::vector<collage::Tensor>> outputs = context->run(inputs);
#pragma once

#include <collage/context.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace collage {

namespace internal {
struct ArtifactImpl;
struct PoolImpl;
}  // namespace internal

// A program that never changes. Cheap to copy (shared); any thread may use it.
class Artifact {
 public:
  // Maps the file, which must not be changed while it is in use. kUnavailable: it was made by
  // another version, for another processor, or needs a library that is not here; kBadModel: it is
  // damaged or no artifact.
  // `threads`: of each context; 0: those that it was compiled for where somebody chose them, else
  // the cores that this process may use.
  static Result<Artifact> load(const std::filesystem::path& path, int threads = 0);
  // From memory. It is copied unless it begins on a multiple of 64 bytes and `owner` keeps it.
  static Result<Artifact> load(const void* data, size_t bytes,
                               std::shared_ptr<const void> owner = nullptr);
  // The same where the owner of this public key (Ed25519, PEM) signed every byte, as `collage
  // compile
  // --sign` does; any other is refused (kBadModel) before anything in it is interpreted. A file is
  // read into memory, so that nobody changes it afterwards. kUsage: the text is no such key.
  static Result<Artifact> load_signed(const std::filesystem::path& path,
                                      const std::string& public_key, int threads = 0);
  static Result<Artifact> load_signed(const void* data, size_t bytes, const std::string& public_key,
                                      std::shared_ptr<const void> owner = nullptr);

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  int threads() const;  // that each context computes with
  Result<Context> make_context() const;

  explicit Artifact(std::shared_ptr<const internal::ArtifactImpl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const internal::ArtifactImpl> impl_;
};

// Contexts for a server: runs on any number of threads, at most `most` at once (0: as many as the
// cores that this process may use have room for); the others wait for their turn. Contexts are made
// when they are first needed.
class ContextPool {
 public:
  ContextPool(Artifact program, size_t most);
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

 private:
  std::shared_ptr<internal::PoolImpl> impl_;
};

}  // namespace collage
