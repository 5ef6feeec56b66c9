// Backend: the implementation behind a target kind. It says which sub-graphs it can take (its
// partition rule), in which ways (variants), and compiles one (a kernel over caller-owned buffers).
// Refusing is ordinary: every refusal is a Status with a reason, never an abort, and exceptions of
// a vendor library are caught inside the backend's folder. Methods are const and may be called from
// any one thread at a time per object.
//
// A backend is one folder under src/backend/ and one line in backend/registry.cc's caller
// (targets/backends.cc); nothing else compares its name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/schedule_space.h"
#include "backend/variant.h"
#include "ir/expr.h"
#include "ir/target.h"
#include "partition/rules/rule.h"
#include "passes/pass.h"
#include "runtime/kernel.h"

namespace collage {

struct CompileOptions {
  int threads = 1;           // size of the one thread team
  std::string cache_folder;  // for compiled objects; empty: keep nothing on disk
};

// A loop of nothing but a backend's arithmetic, on registers, which all threads of a team run at
// once: what they do then is the most that the backend's kernels could.
struct PeakProbe {
  void (*run)(int rounds) = nullptr;
  double flops_per_round = 0;  // operations of that arithmetic in a round, multiply-adds as two
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  // Version of the library behind it and of our own kernel sources; a part of every cost key:
  // changing it invalidates measurements.
  virtual std::string version() const = 0;
  // Whether it can run here (instruction set, library loads), else the reason and what to install.
  virtual Status available() const { return {}; }
  // Targets are in the order of their priorities, lower first, the host last. Beyond that it
  // decides nothing but which of two covers of equal cost is found first.
  virtual int priority() const { return 100; }
  // The host of last resort takes what no other backend can and is never counted as a
  // single-backend cover.
  virtual bool is_host() const { return false; }
  // A toolchain that compiles whole sub-graphs (openvino), maybe better than their parts. Besides
  // its single-backend cover there is one of its largest candidates ("NAME (whole)"), and touching
  // kernels of a cover are tried as one (cover/merged_cover.h).
  virtual bool prefers_maximal_regions() const { return false; }

  // Whether it is in use where no targets are named; else `--targets` has to ask for it.
  virtual bool by_default() const { return true; }

  // Whether its kernels take milliseconds to compile, and run well enough without measuring: for
  // shapes that come in the middle of a run (dynamic/stage_program.h).
  virtual bool compiles_fast() const { return false; }

  // The devices whose memory its kernels take and give tensors in, for each of which it registers
  // that memory (runtime/device_memory.h). A target that names none is on the first.
  virtual std::vector<VirtualDevice> devices() const { return {VirtualDevice{}}; }

  // Its kernels compute with threads of their own (ThreadUse::kOwnPool): the search charges for
  // waking them up beside the team.
  virtual bool brings_own_threads() const { return false; }

  // Where its kernels multiply bfloat16 numbers with something faster than the vector units,
  // against whose peak they are held (report/roofline.h).
  virtual std::optional<PeakProbe> peak_probe(const Target& target) const {
    (void)target;
    return std::nullopt;
  }

  // How many times as fast as float32 multiply-adds of the widest vectors its kernels' arithmetic
  // can be at most. What could not be in a best cover even so is never measured.
  virtual double vector_speedup() const { return 1; }

  // Hooks, all optional, for what a toolchain wants of the graph before it is partitioned.
  // Operators of its own, once, when it is registered, whose names should start with the backend's;
  // and external functions that tensor programs may call (tensor_program/external.h).
  virtual void register_operators() const {}
  // Rewrites of the whole module, run after the simplification and only when the target is used, so
  // they may introduce the backend's own operators; they must keep what the model computes.
  virtual std::vector<Pass> rewrites(const Target& target) const {
    (void)target;
    return {};
  }
  // The function of a kernel with other constants in place (repacked, say, or folded), before it is
  // compiled; parameters and results must stay.
  virtual Result<Function> update_constants(const Function& function, const Target& target) const {
    (void)target;
    return function;
  }

  virtual PartitionRulePtr partition_rule(const Target& target) const = 0;
  // The ways to compute `function` (parameters are the tensors that flow in, constants are
  // embedded), best guess first; or why it cannot. Calls may be wrapped in Composite functions:
  // `inline_calls` gives the flat graph.
  virtual Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                                const CompileOptions& options) const = 0;
  // Schedules beyond these, for a search to time some of where there is time for it.
  virtual Result<ScheduleSpace> schedule_space(const Function& function, const Target& target,
                                               const CompileOptions& options) const {
    (void)function, (void)target, (void)options;
    return ScheduleSpace();
  }
  // More ways, which round to a smaller float type (Variant::lowered), where that can pay; asked
  // for only by the user's leave, of a backend that says it has some on this processor.
  virtual bool lowers() const { return false; }
  // It has no others: without that leave it is not among the targets.
  virtual bool only_lowers() const { return false; }
  virtual Result<std::vector<Variant>> lowered_variants(const Function& function,
                                                        const Target& target,
                                                        const CompileOptions& options) const {
    (void)function, (void)target, (void)options;
    return std::vector<Variant>();
  }
  virtual Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                                  const Target& target,
                                                  const CompileOptions& options) const = 0;
  // The operators of which its kernels may give a number where the operator's definition gives NaN.
  // A kernel with any of them is not used under `--accuracy strict`.
  virtual std::vector<std::string_view> loses_nan() const { return {}; }
  // The algorithms whose variants set Variant::spreads_nan, in words for the user; empty: it has
  // none.
  virtual std::string spreads_nan() const { return ""; }
  // A kernel with one input and one output that changes the encoding of a tensor, or why it cannot.
  virtual Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type,
                                                             const Encoding& from,
                                                             const Encoding& to,
                                                             const CompileOptions& options) const {
    (void)type, (void)options;
    return unsupported("{}: no conversion from {} to {}", name(), from.to_string(), to.to_string());
  }
};

// Who makes a backend's kernels: a toolchain, named in the "Compiler" attribute of partitioned
// text, or the project itself, whose kernels are inline functions there.
enum class KernelOrigin { kToolchain, kOwn };

// Registered backends live for the rest of the process. Several threads may call one at once.
void register_backend(std::unique_ptr<Backend> backend,
                      KernelOrigin origin = KernelOrigin::kToolchain);
// The "Compiler" attribute of its kernels; empty for own kernels.
std::string compiler_of(const Backend& backend);
Backend* find_backend(std::string_view name);  // null when not registered
std::vector<Backend*> all_backends();          // in order of registration

}  // namespace collage
