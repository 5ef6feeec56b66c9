// What Python runs: a program that this process compiled, or one that it loaded from an artifact.
#pragma once

#include <collage/artifact.h>
#include <collage/collage.h>
#include <collage/report.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace collage::python {

class AnyProgram {
 public:
  virtual ~AnyProgram() = default;
  virtual const std::vector<TensorInfo>& inputs() const = 0;
  virtual const std::vector<TensorInfo>& outputs() const = 0;
  // Without the interpreter's lock, on several threads at once. Makes the outputs where there are
  // none.
  virtual Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) = 0;
};

// Its runs take turns.
class CompiledProgram final : public AnyProgram {
 public:
  CompiledProgram(Model model, Program program, RunRecord record)
      : model_(std::move(model)), program_(std::move(program)), record_(std::move(record)) {}

  const std::vector<TensorInfo>& inputs() const override { return program_.inputs(); }
  const std::vector<TensorInfo>& outputs() const override { return program_.outputs(); }
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    return program_.run(inputs, outputs);
  }
  Result<std::string> report() const { return report_text(model_, program_, record_); }
  Result<Model> module() const { return program_.module(); }
  Status save(const std::filesystem::path& path, const std::string& signing_key) const {
    return program_.save(model_, path, signing_key);
  }

 private:
  Model model_;
  Program program_;
  RunRecord record_;
};

// As many of its runs go on at once as it has contexts.
class LoadedProgram final : public AnyProgram {
 public:
  LoadedProgram(const Artifact& artifact, size_t contexts)
      : artifact_(artifact), contexts_(artifact, contexts) {}

  const std::vector<TensorInfo>& inputs() const override { return artifact_.inputs(); }
  const std::vector<TensorInfo>& outputs() const override { return artifact_.outputs(); }
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    return contexts_.run(inputs, outputs);
  }

 private:
  Artifact artifact_;
  ContextPool contexts_;
};

// By its name in Python and in the command; ValueError for another.
Effort effort_of(const std::string& name);

}  // namespace collage::python
