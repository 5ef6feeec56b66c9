// Backend: the implementation behind a target kind: which sub-graphs it can take (its partition
// rule), the ways to compute one (variants), and compiling one (a kernel over caller-owned
// buffers). Refusing is ordinary: every refusal is a Status with a reason, never an abort, and
// exceptions of a vendor library are caught inside the backend's folder. Methods are const and may
// be called from any one thread at a time per object.
//
// A backend is one folder under src/backend/ and one line in backend/registry.cc's caller
// (backend/targets/backends.cc); nothing else compares its name.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/kernel_row.h"
#include "backend/schedule_space.h"
#include "backend/variant.h"
#include "ir/expr.h"
#include "ir/target.h"
#include "partition/rules/rule.h"
#include "runtime/kernel.h"

namespace collage {

struct CompileOptions {
  int threads = 1;           // size of the one thread team
  std::string cache_folder;  // for compiled objects; empty: keep nothing on disk
  // The most that the listed variants may round.
  RoundingLimit rounding = RoundingLimit::kDefault;
  // The instruction sets that code is compiled for (base/processor.h); empty: this
  // processor's. Kernels for others are compiled and saved here, and never run.
  std::vector<std::string> features = {};
};

// A loop of a backend's arithmetic alone, on registers, which all threads of a team run at once:
// its rate is the peak of the backend's kernels.
struct PeakProbe {
  void (*run)(int rounds) = nullptr;
  double flops_per_round = 0;  // operations of that arithmetic in a round, multiply-adds as two
};

// Constant properties of a backend on this machine.
// An option that a target of the backend may have, and the values that it may take; none: any.
struct TargetOption {
  std::string_view name;
  std::vector<std::string_view> values = {};
};

struct BackendTraits {
  // Version of the library behind it and of our own kernel sources; a part of every cost key:
  // changing it invalidates measurements.
  std::string version;
  // Targets are in the order of their priorities, lower first, the host last. Where costs cannot be
  // told apart it decides which kernel, and which cover, is used (choose/ties.h, declared_order).
  int priority = 100;
  // True: in use if no targets are named; false: only if `--targets` names it.
  bool by_default = true;
  // True for the fallback backend, which takes what no other can and never counts as a
  // single-backend cover.
  bool is_host = false;
  // A toolchain that compiles whole sub-graphs (openvino), maybe better than their parts. Besides
  // its single-backend cover there is one of its largest candidates ("NAME (whole)"), and touching
  // kernels of a cover are tried as one (choose/cover_variations.cc).
  bool prefers_maximal_regions = false;
  // True if its kernels take milliseconds to compile, and run well enough without measuring: for
  // first answers (choose/light_cover.h), and shapes that come in the middle of a run
  // (dynamic/stage_program.h).
  bool compiles_fast = false;
  // True if its kernels compute with threads of their own (ThreadUse::kOwnPool): the search charges
  // for waking them up beside the team.
  bool brings_own_threads = false;
  // True if it may have variants on this processor that only RoundingLimit::kAny allows.
  bool lowers = false;
  // The most by which its kernels' arithmetic can exceed float32 multiply-adds of the widest
  // vectors. Candidates too slow for a best cover even so are never measured.
  double vector_speedup = 1;
  // Set if its kernels multiply bfloat16 numbers with a unit faster than the vector units: the peak
  // that they are compared with (report/roofline.h).
  std::optional<PeakProbe> peak_probe = {};
  // The devices whose memory its kernels read and write tensors in; it registers each one's memory
  // (runtime/device_memory.h). A target that names none is on the first.
  std::vector<VirtualDevice> devices = {VirtualDevice{}};
  // A target with others is refused.
  std::vector<TargetOption> options = {};
  // The operators for which its kernels may give a number where the operator's definition gives
  // NaN. A kernel with any of them is not used under `--accuracy strict`.
  std::vector<std::string_view> loses_nan = {};
  // The kinds of its kernels; empty of backends that state none.
  std::vector<KernelRow> kernels = {};
  // What its kernels bring into the process: runtimes ("tbb"), and names that its libraries define
  // for all of it. What it does not run beside: backends, runtimes and names.
  std::vector<std::string_view> runtimes = {}, symbols = {}, conflicts = {};
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // The target kind.
  const std::string& name() const { return name_; }
  const BackendTraits& traits() const;

  // Fails if it cannot run here (instruction set, libraries), with the reason and what to install.
  virtual Status available() const { return {}; }
  virtual PartitionRulePtr partition_rule(const Target& target) const = 0;
  // Returns the ways to compute `function` (parameters are the tensors that flow in, constants are
  // embedded), best guess first; or why it cannot. Calls may be wrapped in Composite functions:
  // `inline_calls` gives the flat graph. Variants that round more than options.rounding allows may
  // be left out (offer.h does so).
  virtual Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                                const CompileOptions& options) const = 0;
  // Returns further schedules, of which a search times some if there is time for it.
  virtual Result<ScheduleSpace> schedule_space(const Function& function, const Target& target,
                                               const CompileOptions& options) const;
  virtual Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                                  const Target& target,
                                                  const CompileOptions& options) const = 0;
  // Makes a kernel with one input and one output that changes a tensor's encoding, or says why not.
  virtual Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type,
                                                             const Encoding& from,
                                                             const Encoding& to,
                                                             const CompileOptions& options) const;

 protected:
  // `traits` is called once, when they are first needed: it may load a library.
  Backend(std::string name, std::function<BackendTraits()> traits)
      : name_(std::move(name)), find_traits_(std::move(traits)) {}

 private:
  const std::string name_;
  const std::function<BackendTraits()> find_traits_;
  mutable std::once_flag found_;
  mutable BackendTraits traits_;
};

// Why no program may hold kernels of both: one conflicts with the other or with what it brings, or
// both define a symbol. Empty where one may.
std::string why_apart(const Backend& a, const Backend& b);

// The maker of a backend's kernels: a toolchain, named in the "Compiler" attribute of partitioned
// text, or the project itself, whose kernels are inline functions there.
enum class KernelOrigin { kToolchain, kOwn };

// Registered backends live for the rest of the process. Several threads may call one at once.
void register_backend(std::unique_ptr<Backend> backend,
                      KernelOrigin origin = KernelOrigin::kToolchain);
// Returns the "Compiler" attribute of its kernels; empty for own kernels.
std::string compiler_of(const Backend& backend);
Backend* find_backend(std::string_view name);  // null when not registered
std::vector<Backend*> all_backends();          // in order of registration

}  // namespace collage
