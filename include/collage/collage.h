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
// Nothing here throws or aborts on bad input: every call that can fail returns a Result (see
// result.h for the codes).
#pragma once

#include <collage/program.h>
#include <collage/result.h>
#include <collage/tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collage {

struct LoadOptions {
  std::map<std::string, Shape> shapes;  // of inputs by name; for models with dynamic dimensions
  std::map<std::string, int64_t> dims;  // of symbolic dimensions by name: {"batch", 8}
  // Values of inputs by name, which the loaded model then has as constants: for inputs that decide
  // shapes (a reshape's target, a number of repeats). kUsage: no input has that name, type and
  // shape.
  std::map<std::string, Tensor> constants = {};
  // False: keeps the model as it was imported, for passes of the user's own (collage/passes.h).
  bool simplify = true;
  // Folders that symbolic links of external data may lead to, besides the model's own folder and
  // the cache of Hugging Face that holds it.
  std::vector<std::filesystem::path> data_roots = {};
};

namespace internal {
struct ModelImpl;
}

// An imported model, simplified and typed. Copies share it. A model of float16 or bfloat16 takes
// and gives tensors of these types and is computed in float32 in between. collage/module.h reads,
// prints and changes its graph.
class Model {
 public:
  // Reads ONNX (.onnx, external data beside it) or Relay text (.relay). kBadModel: the file is
  // unreadable or malformed, or a dynamic dimension has no value; kUnsupported: operators are not
  // implemented; the message lists all of them.
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

// Costs that the user gives: of a simulator, a formula, or measurements of another kind. Called
// from the thread that compiles. A question may be asked again and must get the same answer.
class CostModel {
 public:
  virtual ~CostModel() = default;

  struct Kernel {
    std::string function;  // Relay text, large constants by type alone; names mean nothing
    std::string target;    // "native -option=value"
    std::string variant;   // one of the target's ways: "direct(float32:aBcd16b)->(float32:aBcd16b)"
  };
  // Returns the seconds of one run, above 0; none: the kernel is measured.
  virtual std::optional<double> kernel_seconds(const Kernel& kernel) = 0;

  struct Conversion {
    Shape shape;
    DType dtype;
    std::string from, to;  // "float32:abcd", "float32:aBcd16b"
  };
  // Returns the same for a change of a tensor's layout or type.
  virtual std::optional<double> conversion_seconds(const Conversion& conversion) {
    (void)conversion;
    return std::nullopt;
  }
};

class Pace;         // opaque
class WeightForms;  // opaque
std::shared_ptr<WeightForms> make_weight_forms();

struct ProgramOptions {
  std::vector<std::string>
      targets;  // "onednn", "native -option=value" …; empty: everything this machine offers. The
                // option -rules=FILE, or a rule's text, is of every backend (docs/partitioning.md)
  // Devices to use, such as "cpu:0, gpu:0, little=cpu:1@4-7", with all targets that this machine
  // offers on them, if `targets` is empty. Empty: the devices of the targets.
  std::string devices;
  // File of targets with rules of the user's own (docs/partitioning.md), in place of `targets`.
  std::filesystem::path config;
  int threads = 0;                 // 0: the cores this process may use
  std::filesystem::path database;  // of measured costs; empty: in the user's cache folder
  // Costs measured with less effort are measured again. Waiting for quiet moments of a shared
  // machine takes at most as long as measuring under kFast, and 10 s more under the others.
  Effort effort = Effort::kDefault;
  // Empty: the costs of everything that could be in the best program are measured, for as long as
  // that takes. Else the answer comes first: the program that was chosen for this model before, or
  // one that each toolchain makes by itself, the fastest of those; then costs are measured for at
  // most so many seconds, about, and the program is a better one if that shows any. Ignored where
  // other options ask for measured costs: frozen_costs, always_measure, cost_model, max_error,
  // memory, or the effort kMax.
  std::optional<double> budget_seconds;
  std::shared_ptr<Pace> pace;  // of measuring in the background: what Tuning sets (tuning.h)
  // Measures even if one toolchain is left besides the host. Otherwise such a program is compiled
  // without measuring, unless the effort is kMax or all costs are known.
  bool always_measure = false;
  // Costs that replace measured ones: a kernel that it gives seconds for is only tried for
  // correctness. Reduced-precision kernels (max_error) and covers are timed all the same. Not with
  // frozen_costs.
  std::shared_ptr<CostModel> cost_model;
  bool frozen_costs = false;  // fail with kFrozenCosts instead of measuring
  // Compiles for the machine of this fingerprint, or of its first digits (docs/fleet.md), by what
  // the database knows of it: nothing is measured, and targets and threads are by default those of
  // that machine. The program is to be saved; where this processor lacks instruction sets of that
  // one, it is not checked either, and must not be run here. kUsage: the database knows no such
  // machine. kUnavailable: of another build or architecture, or a target that cannot be had here.
  std::string for_fingerprint;
  // Leaves out algorithms with larger rounding errors (Winograd), kernels that may lose NaN (give a
  // number instead) or spread it (give NaN for results near by), and kernels whose repeated runs
  // differed in bits.
  bool strict_accuracy = false;
  // Largest error of an output, relative to its largest value. Kernels may compute in bfloat16
  // within it, and a program that errs by more on the inputs of its check is refused (kVerification
  // if all are). 0: no kernel has reduced precision. Not with strict_accuracy.
  double max_error = 0;
  // Inputs that the program is meant for, each with one tensor for each of inputs(), in order. A
  // program whose outputs for one of them differ from the reference's is not chosen. Every program
  // is also checked on seeded random inputs.
  std::vector<std::vector<Tensor>> check_inputs;
  std::vector<std::string> exclude;  // "backend" or "backend:operator"
  std::vector<std::string>
      pin;  // "regex=backend": kernels of nodes whose origin matches run on that backend
  // Most bytes that the program may keep on a device, weights of kernels included:
  // "gpu:0=500000000", "cpu:0=500M". kUnavailable: no program that was found keeps to it.
  std::vector<std::string> memory;
  // For programs that share one set of weights in memory, such as a model's specialisations for
  // several shapes: each keeps large weights in the form that the programs compiled with the same
  // object before it chose, as far as some backend can. From make_weight_forms(). Compile one
  // program after the other, the most important first.
  std::shared_ptr<WeightForms> weight_forms;
  // The `collage` command, which measures candidates in worker processes. Empty: beside this
  // library, then on PATH.
  std::filesystem::path worker;
  // Called with the text of the plan that was chosen (docs/architecture.md): what it returns, with
  // other places, calls or order, is what runs and is saved. kBadModel: the text cannot run. What
  // it computes is not compared with the reference again.
  std::function<std::string(const std::string& plan)> rewrite_plan;
  // Keeps what Program::module returns: the model's weights stay in memory as long as the program.
  bool keep_module = false;
};

}  // namespace collage
