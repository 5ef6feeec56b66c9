// Programs: compiled in this process, or loaded from a file (`collage compile MODEL -o F.collage`)
// without the compiler. A program is a set of specialisations, each compiled for some shapes; one
// of fixed shapes has one.
//
//   collage::Result<collage::Program> program = collage::Program::load("resnet50.collage");
//   collage::Result<collage::Context> context = program->make_context();   // one a thread
//   collage::Result<std::vector<collage::Tensor>> outputs = context->run(inputs);
//
// libcollage_runtime loads and runs programs; libcollage compiles them too.
#pragma once

#include <collage/context.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace collage {

class Model;
struct ProgramOptions;
struct DynamicOptions;
class SymbolicModel;

namespace internal {
struct ProgramImpl;
struct CompiledProgram;
struct PoolImpl;
}  // namespace internal

// A part of a model compiled for some shapes.
struct SpecialisationInfo {
  std::string part;          // "main", "main/1" after the first cut, "loop 'NAME'"
  std::string shapes;        // of its inputs: "mask (1, 64), tokens (1, 64)"
  bool interpreted = false;  // too little work to compile
  bool quick = false;        // compiled with one target, without measuring (docs/dynamic.md)
  size_t kernels = 0;        // 0 of what was not loaded from its file yet
  double compile_seconds = 0;
  size_t runs = 0;
};

// Copies share it. Any thread may use it; its own runs are serialised, those of contexts go on at
// once (docs/threads.md).
class Program {
 public:
  // Maps the file, which must not be changed while it is in use. kUnavailable: it was made by
  // another version, for another processor, or needs a library that is not here; kBadModel: it is
  // damaged or no artifact; kUsage: it holds a model that runs in stages, which `compile` takes.
  // `threads`: of each context; 0: those that it was compiled for if somebody chose them, else the
  // cores that this process may use.
  static Result<Program> load(const std::filesystem::path& path, int threads = 0);
  // Loads from memory, which is copied unless it begins on a multiple of 64 bytes and `owner` keeps
  // it.
  static Result<Program> load(const void* data, size_t bytes,
                              std::shared_ptr<const void> owner = nullptr);
  // Loads what the owner of this public key (Ed25519, PEM) signed, as `collage compile --sign`
  // does; refuses any other (kBadModel) before anything in it is interpreted. A file is read into
  // memory, so that nobody changes it afterwards. kUsage: the text is no such key.
  static Result<Program> load_signed(const std::filesystem::path& path,
                                     const std::string& public_key, int threads = 0);
  static Result<Program> load_signed(const void* data, size_t bytes, const std::string& public_key,
                                     std::shared_ptr<const void> owner = nullptr);

  // Partitions by measured cost: the first time on a machine this measures (minutes), afterwards
  // costs come from the database. The model may be of any stage: kernels that are already
  // partitioned are kept; a model that was not simplified is compiled as it stands. kUnavailable:
  // this machine or build lacks a target; kUsage: a target is unknown. In libcollage, with
  // collage/collage.h.
  static Result<Program> compile(const Model& model, const ProgramOptions& options);
  static Result<Program> compile(const Model& model);
  // Makes a program that is compiled for the shapes that come, of a file of ONNX, or of one that
  // `save` wrote of a model that runs in stages: its targets, accuracy, buckets, states and
  // constants replace those of `options`, and what it holds is not compiled again. Errors are those
  // of Model::load and `load`; only a run shows what needs shapes. In libcollage, with
  // collage/dynamic.h.
  static Result<Program> compile(const std::filesystem::path& path, const DynamicOptions& options);
  // Likewise of a model over symbols (collage/symbolic.h). kUsage: constants or operators are
  // given.
  static Result<Program> compile(const SymbolicModel& model, const DynamicOptions& options);

  const std::vector<TensorInfo>& inputs() const;  // without states
  const std::vector<TensorInfo>& outputs() const;
  std::vector<SpecialisationInfo> specialisations() const;
  int threads() const;  // that it computes with

  // Runs it in a context of its own, see Context. A program that is compiled for the shapes that
  // come compiles in the first run with new ones (docs/dynamic.md).
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
  void reset();
  // Makes a context for another thread, or with states of its own: contexts share code and weights,
  // and run beside each other and beside the program's own runs. kUnsupported: one of its kernels
  // cannot, or it is compiled for the shapes that come; save and load that.
  Result<Context> make_context() const;

  // Compiles for these inputs as the options ask, also if compile_on_demand is off or it was
  // compiled in seconds before, and discards the results. kUsage: the program is not compiled for
  // the shapes that come.
  Status prepare(const std::vector<Tensor>& inputs);
  // Does so for every combination of the buckets' sizes; kUsage: a dimension has none.
  Status prepare_buckets();

  // Returns the model as a program of fixed shapes computes it: every kernel is a function that
  // states its target and variant, encodings included (docs/partitioning.md). Compiling it gives
  // the same program without searching or measuring. kUsage: compiled without keep_module, or not
  // in this process. In libcollage.
  Result<Model> module() const;

  // Writes a program of fixed shapes as an artifact, with the model that it was compiled from.
  // kUnsupported, naming the backend: one of its kernels cannot be saved. `signing_key`, if given:
  // a private key of Ed25519 in PEM that signs the file (docs/security.md). In libcollage.
  Status save(const Model& model, const std::filesystem::path& path,
              const std::string& signing_key = "") const;
  // Writes what was compiled so far for the shapes that came, in whole or not at all. `load` takes
  // the file; if the model runs in several stages, `compile` does: stages are imported for the
  // values that come, so the file holds the model too. kUsage: nothing was compiled; kUnsupported:
  // a kernel cannot be saved, or such a model has more than 2 GB.
  Status save(const std::filesystem::path& path, const std::string& signing_key = "") const;

  explicit Program(std::shared_ptr<internal::ProgramImpl> impl) : impl_(std::move(impl)) {}
  // Returns what `compile` made of a model. In libcollage.
  internal::CompiledProgram& impl();
  const internal::CompiledProgram& impl() const;
  internal::ProgramImpl& any_impl() const { return *impl_; }

 private:
  std::shared_ptr<internal::ProgramImpl> impl_;
};

// Contexts for a server: runs on any number of threads, at most `most` at once (0: as many as the
// cores that this process may use have room for); the others wait for their turn. Contexts are made
// when they are first needed. Not for programs with states.
class ContextPool {
 public:
  ContextPool(Program program, size_t most);
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
  // Uses another program, of the same inputs and outputs, for the runs that begin from now on.
  void replace(Program program);

 private:
  std::shared_ptr<internal::PoolImpl> impl_;
};

}  // namespace collage
