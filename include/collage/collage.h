// Collage as a library: load a model, compile it for this machine by measured cost, run it.
//
//   #include <collage/collage.h>
//   auto model = collage::Model::load("resnet50.onnx");
//   if (!model) return report(model.status());
//   auto program = collage::Program::compile(*model);
//   collage::Tensor image = collage::Tensor::zeros(collage::DType::kFloat32, {1, 3, 224, 224});
//   auto outputs = program->run({image});
//   const float* scores = (*outputs)[0].data<float>();
//
// Nothing here throws or aborts on bad input: every call that can fail gives a Result (see result.h
// for the codes).
#pragma once

#include <collage/context.h>
#include <collage/result.h>
#include <collage/tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collage {

struct LoadOptions {
  std::map<std::string, Shape> shapes;  // of inputs by name; for models with dynamic dimensions
  std::map<std::string, int64_t> dims;  // of symbolic dimensions by name: {"batch", 8}
  // Values of inputs by name, which are none of the loaded model's: for those that decide shapes (a
  // reshape's target, a number of repeats). kUsage: no input of that name, type and shape.
  std::map<std::string, Tensor> constants = {};
  // Otherwise the model is as it was imported, for passes of one's own (collage/passes.h).
  bool simplify = true;
  // Folders that symbolic links of external data may lead to, besides the model's own and those of
  // a cache of Hugging Face that it is in.
  std::vector<std::filesystem::path> data_roots = {};
};

namespace internal {
struct ModelImpl;
struct ProgramImpl;
}  // namespace internal

// An imported model, simplified and typed. Cheap to copy (shared). A model of float16 or bfloat16
// takes and gives tensors of these types and is computed in float32 in between. What it consists of
// can be read, printed and changed: collage/module.h.
class Model {
 public:
  // Reads ONNX (.onnx, external data beside it) or Relay text (.relay). kBadModel: unreadable or
  // malformed, a dynamic dimension without a value; kUnsupported: operators that are not
  // implemented, all of them listed.
  static Result<Model> load(const std::filesystem::path& path, const LoadOptions& options = {});

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;

  explicit Model(std::shared_ptr<internal::ModelImpl> impl) : impl_(std::move(impl)) {}
  internal::ModelImpl& impl() { return *impl_; }
  const internal::ModelImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<internal::ModelImpl> impl_;
};

// How much care measurements take: kFast for a first look, kMax where the last percent matters.
enum class Effort { kFast, kDefault, kMax };

// What kernels take, by whoever knows or guesses it: a simulator, a formula, measurements of
// another kind. Called from the thread that compiles; the same question may be asked again, and
// must get the same answer.
class CostModel {
 public:
  virtual ~CostModel() = default;

  struct Kernel {
    std::string function;  // Relay text, large constants by type alone; names mean nothing
    std::string target;    // "native -option=value"
    std::string variant;   // one of the target's ways: "direct(float32:aBcd16b)->(float32:aBcd16b)"
  };
  // Seconds of one run, above 0; none: it is measured.
  virtual std::optional<double> kernel_seconds(const Kernel& kernel) = 0;

  struct Conversion {
    Shape shape;
    DType dtype;
    std::string from, to;  // "float32:abcd", "float32:aBcd16b"
  };
  // Likewise of a change of a tensor's layout or type.
  virtual std::optional<double> conversion_seconds(const Conversion& conversion) {
    (void)conversion;
    return std::nullopt;
  }
};

class WeightForms;  // opaque
std::shared_ptr<WeightForms> make_weight_forms();

struct ProgramOptions {
  std::vector<std::string>
      targets;  // "onednn", "native -option=value" …; empty: everything this machine offers
  // "cpu:0, gpu:0": the devices to use, and all that this machine offers on them, where no targets
  // are named; empty: those of the targets.
  std::string devices;
  // Targets with rules of the user's own (docs/partitioning.md), in place of `targets`.
  std::filesystem::path config;
  int threads = 0;                 // 0: the cores this process may use
  std::filesystem::path database;  // of measured costs; empty: in the user's cache folder
  // Costs measured with less are measured again. kFast waits for quiet moments of a machine that
  // others use too no longer than measuring takes itself, the others 10 s besides.
  Effort effort = Effort::kDefault;
  // Measure even where one toolchain is left besides the host. Otherwise such programs are made
  // without measuring, unless the effort is kMax or all costs are known.
  bool always_measure = false;
  // Costs that stand before measured ones: what it gives seconds of is only tried, for being right.
  // Kernels of smaller float types (max_error) and covers are timed all the same. Not with
  // frozen_costs.
  std::shared_ptr<CostModel> cost_model;
  bool frozen_costs = false;  // fail with kFrozenCosts instead of measuring
  // Leave out algorithms with larger rounding errors (Winograd), kernels that may lose NaN (give a
  // number instead) or spread it (give NaN for results near by), and kernels that gave other bits
  // when run again.
  bool strict_accuracy = false;
  // What an output may err by, as a part of its largest value: kernels may compute in bfloat16
  // within that, and no program is made that errs by more on the inputs it is checked with
  // (kVerification where none is within it). 0: nothing is lowered. Not with strict_accuracy.
  double max_error = 0;
  // Inputs that the program is meant for, each one tensor an input, in the order of inputs(). A
  // program whose outputs on one of them are not the reference's is not chosen. Every program is
  // checked on seeded random inputs besides.
  std::vector<std::vector<Tensor>> check_inputs;
  std::vector<std::string> exclude;  // "backend" or "backend:operator"
  std::vector<std::string>
      pin;  // "regex=backend": kernels of nodes whose origin matches run on that backend
  // "gpu:0=500000000", "cpu:0=500M": the most bytes that the program may keep on a device, weights
  // of kernels included. kUnavailable where no program that was found keeps to it.
  std::vector<std::string> memory;
  // Of programs that are to have one set of weights in memory, such as a model's specialisations
  // for several shapes: each keeps large weights in the form that those compiled with the same one
  // before it chose, as far as some backend can. From make_weight_forms(); compile one after the
  // other, the most important first.
  std::shared_ptr<WeightForms> weight_forms;
  // The `collage` command, which measures candidates in processes of its own; empty: beside this
  // library, then on PATH.
  std::filesystem::path worker;
  // Keep what Program::module gives: the model's weights stay in memory as long as the program.
  bool keep_module = false;
};

// A compiled program. Movable. Any thread may run it; its runs take turns (docs/threads.md).
class Program {
 public:
  // Partitions by measured cost: the first time on a machine this measures (minutes), afterwards
  // costs come from the database. The model may be of any stage: what is partitioned already stays
  // as it is; one that was not simplified is compiled as it stands. kUnavailable: a target that
  // this machine or build lacks; kUsage: an unknown target.
  static Result<Program> compile(const Model& model, const ProgramOptions& options = {});

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  // Inputs in the order of inputs(), shapes and dtypes equal to theirs (kBadModel otherwise).
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // The same into tensors of the caller, allocated with the shapes and dtypes of outputs();
  // kBadModel where one overlaps an input or another output.
  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

  // The model as this program computes it: every kernel a function that states its target and
  // variant, encodings included (docs/partitioning.md). Compiled again it is the same program,
  // without searching or measuring. kUsage: compiled without keep_module.
  Result<Model> module() const;

  // For running it on several threads at once: contexts share code and weights, run beside each
  // other and beside the program's own runs. kUnsupported where one of its kernels cannot.
  Result<Context> make_context() const;

  // Writes it as an artifact (collage/artifact.h), with the model that it was compiled from.
  // kUnsupported, naming the backend, where one of its kernels cannot be saved.
  // `signing_key`, where given: a private key of Ed25519 in PEM that signs the file
  // (docs/security.md).
  Status save(const Model& model, const std::filesystem::path& path,
              const std::string& signing_key = "") const;

  explicit Program(std::unique_ptr<internal::ProgramImpl> impl);
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
  internal::ProgramImpl& impl() { return *impl_; }
  const internal::ProgramImpl& impl() const { return *impl_; }

 private:
  std::unique_ptr<internal::ProgramImpl> impl_;
};

}  // namespace collage
