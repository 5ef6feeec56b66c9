// Executor: runs a Plan. It owns the arena. Consecutive steps whose kernels bring their own threads
// run inside one parked region of the team (see thread_team.h). Steps on cores of their own are
// handed to the team of these (core_team.h), and run beside the steps that they do not depend on.
//
// Any thread may run it: a run holds a team of the size that its kernels were compiled for.
// Overlapping runs of one executor are serialised, since they share the arena and the kernels; a
// child process (fork) waits for no run of its parent. Executors of twins (Kernel::twin) of one
// plan share code and constants and run at once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/core_team.h"
#include "runtime/device_memory.h"
#include "runtime/memory_overlap.h"
#include "runtime/of_process.h"
#include "runtime/plan.h"
#include "runtime/thread_team.h"

namespace collage {

class Executor {
 public:
  // Fails if an arena cannot be allocated.
  static Result<Executor> create(std::shared_ptr<const Plan> plan, int threads);
  // Uses twins of the plan's kernels, so that it runs beside all other executors. Fails if a kernel
  // has none.
  static Result<Executor> create_beside(std::shared_ptr<const Plan> plan, int threads);

  const Plan& plan() const { return *plan_; }
  // The team that runs it; null if kernels bring threads of their own, which an active team would
  // disturb.
  ThreadTeam* team();
  // Takes inputs and outputs in the plan's order. Shapes and dtypes must be the plan's (kBadModel
  // otherwise), and no output may overlap an input or another output. Allocates undefined outputs.
  // Copies tensors that are not aligned to 64 bytes. Those in a device's memory (device_tensors.h)
  // take the place of what the plan's transfers copy to or from there, and these are left out; what
  // the plan uses elsewhere is copied.
  Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  // Does the same as a run of a user, which has the next run number (run_number.h), from 0; all
  // other runs have number 0 and no effects.
  Status run_next(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  // Does the same for a caller that counts the runs of several executors; none: as run().
  Status run_as(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                std::optional<uint64_t> number);
  // Does the same and stores the seconds of every step in `seconds` (one entry a step).
  Status run_profiled(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                      std::vector<double>& seconds);
  // Does the same, but the caller runs each step's kernel, any number of times. `run_kernel` must
  // not run this executor.
  using RunKernel = std::function<Status(size_t step, const KernelArgs& args)>;
  Status walk(std::span<const Tensor> inputs, std::span<Tensor> outputs,
              const RunKernel& run_kernel);

  // For a kernel that runs it within a run of its own, many times (control_kernel.h): on memory
  // that is placed once for all further runs, aligned to 64 bytes and of the plan's types, with the
  // team, the run number and the lock of the run around it.
  void place_input(size_t index, void* memory) { place(input_slots_[index], memory); }
  void place_output(size_t index, void* memory) { place(output_slots_[index], memory); }
  Status run_placed() { return execute(nullptr); }

 private:
  struct Bound {
    Kernel* kernel;
    std::vector<void*> inputs, outputs;
    void* workspace;
    std::vector<size_t> awaited = {};          // steps (awaited_steps.h)
    std::unique_ptr<CoreTask> task = nullptr;  // of a step on cores of its own
    bool is_left_out = false;                  // a transfer, in the run that is under way

    KernelArgs args() const { return {inputs.data(), outputs.data(), workspace}; }
  };
  struct Slot {  // where a kernel is told of a part of an input or output
    void** pointer;
    size_t offset;  // bytes
  };
  using Slots = std::vector<Slot>;
  // A step that copies an input to a device, or an output from there, unless the caller's tensor is
  // on that device: then it stands in for the device's buffer.
  struct Transfer {
    size_t step;
    size_t index;      // of the input or output
    BufferId buffer;   // on the device, in an arena
    Slots slots = {};  // of it
  };
  struct Group {  // steps [begin, end) with equal thread use
    size_t begin, end;
    ThreadUse use;
  };
  using Kernels = std::vector<std::shared_ptr<Kernel>>;  // one a step
  struct Arena {
    VirtualDevice device;
    DeviceMemory* memory;  // null: the host's
    std::shared_ptr<void> begin;
  };
  static Result<Executor> create(std::shared_ptr<const Plan> plan, int threads, Kernels kernels);
  Executor(std::shared_ptr<const Plan> plan, std::vector<Arena> arenas, int threads,
           Kernels kernels);
  Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs,
             std::vector<double>* seconds, uint64_t* next_number = nullptr);
  // Runs `body` alone on this executor, with its team.
  template <typename Body>
  Status run_alone(const Body& body);
  Status check_apart(std::span<const Tensor> inputs, std::span<const Tensor> outputs);
  Status bind(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  void* in_arena(const VirtualDevice& device, size_t offset) const;
  void find_slot(const Buffer& buffer, void** pointer);
  void find_transfers();
  Status bind_input(size_t i, const Tensor& given);
  Status bind_output(size_t i, const Tensor& given);
  // Places what lies on `place` in the transfer's stead; what does not, in the arena.
  void use(const Transfer& transfer, const Tensor& given, const VirtualDevice& place);
  static void place(const Slots& slots, void* memory) {
    for (const Slot& slot : slots) *slot.pointer = static_cast<uint8_t*>(memory) + slot.offset;
  }
  Status execute(std::vector<double>* seconds);
  static Status run_step(const Bound* all, size_t s, Kernel& kernel);
  Status synchronise();                            // waits for all devices
  Status give_outputs(std::span<Tensor> outputs);  // those that were staged

  std::shared_ptr<const Plan> plan_;
  std::vector<Arena> arenas_;
  Kernels kernels_;
  ThreadTeam team_;
  std::vector<size_t> beside_;  // steps on cores of their own, ascending
  bool uses_team_ = false;
  std::unique_ptr<OfProcess<std::mutex>> running_;  // locked by the run that is under way
  std::vector<Bound> bound_;
  std::vector<Slots> input_slots_, output_slots_;
  std::vector<Transfer> to_devices_, from_devices_;
  std::vector<Group> groups_;
  std::vector<TensorMemory> input_memory_, output_memory_;  // of the run that is under way
  uint64_t runs_ = 0;                                       // that had numbers
  std::vector<Tensor> staged_inputs_, staged_outputs_;  // aligned stand-ins, made once when needed
  std::vector<bool> is_staged_;                         // outputs of the run that is under way
};

}  // namespace collage
