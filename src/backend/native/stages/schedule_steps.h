// Writing schedules: steps of one stage, and the few combinations of them that all stages share.
// Loops are listed innermost first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor_program/program.h"

namespace collage::native {

using Names = std::vector<std::string>;
using Extents = std::vector<int64_t>;

inline constexpr int64_t kSerialElements = 8192;  // below, a fork and join costs more than it saves

/// Of extents[begin..].
int64_t product(const Extents& extents, size_t begin = 0);

Names loops_of(const tensor_program::Stage& stage);
Extents extents_of(const tensor_program::Stage& stage);

/// Adds steps for a stage, or one update of it.
class Steps {
 public:
  Steps(tensor_program::Program& program, std::string stage, int update = -1)
      : schedule_(program.schedule), stage_(std::move(stage)), update_(update) {}

  void vectorise(const std::string& loop, int64_t width = 0, bool guarded = false) {
    add(Kind::kVectorise, {loop}, width, guarded);
  }
  /// The last vector reads and writes only what is inside.
  void vectorise_masked(const std::string& loop, int64_t width) {
    vectorise(loop, width);
    schedule_.back().masked = true;
  }
  void tensorise(const std::string& lane, const std::string& term, const std::string& intrinsic,
                 int64_t lanes) {
    add(Kind::kTensorise, {lane, term, intrinsic}, lanes);
  }
  void unroll(const std::string& loop) { add(Kind::kUnroll, {loop}); }
  void parallel(const std::string& loop) { add(Kind::kParallel, {loop}); }
  void split(const std::string& loop, const std::string& outer, const std::string& inner,
             int64_t factor, bool guarded = false) {
    add(Kind::kSplit, {loop, outer, inner}, factor, guarded);
  }
  /// By a factor over symbols; does not run past the extent.
  void split(const std::string& loop, const std::string& outer, const std::string& inner,
             const tensor_program::Term& factor) {
    split(loop, outer, inner, tensor_program::known_integer(factor).value_or(0), true);
    if (!tensor_program::known_integer(factor)) schedule_.back().size = factor;
  }
  void fuse(const std::string& inner, const std::string& outer, const std::string& fused) {
    add(Kind::kFuse, {inner, outer, fused});
  }
  void reorder(Names order) { add(Kind::kReorder, std::move(order)); }
  void allow_races() { add(Kind::kAllowRaces, {}); }
  void compute_root() { add(Kind::kComputeRoot, {}); }
  void compute_at(const std::string& stage, const std::string& loop) {
    add(Kind::kComputeAt, {stage, loop});
  }
  void hoist_storage(const std::string& stage, const std::string& loop) {
    add(Kind::kHoistStorage, {stage, loop});
  }

 private:
  using Kind = tensor_program::PrimitiveKind;
  void add(Kind kind, Names names, int64_t number = 0, bool guarded = false) {
    schedule_.push_back({stage_, update_, kind, std::move(names), number, guarded});
  }

  std::vector<tensor_program::Primitive>& schedule_;
  std::string stage_;
  int update_;
};

struct FusedLoop {
  std::string name;  ///< empty where there are no loops
  int64_t extent = 1;
  bool any() const { return !name.empty(); }
};

/// Fuses loops[first..] into one.
FusedLoop fuse_from(Steps& steps, const Names& loops, const Extents& extents, size_t first);

inline constexpr int64_t kTasksPerThread = 8;

/// A few tasks a thread out of the iterations of `loop`; returns the serial loop inside a task.
std::string split_tasks(Steps& steps, const FusedLoop& loop, int threads,
                        int64_t tasks_per_thread = kTasksPerThread);

/// Elements that fill a register of the widest numbers computed, of a loop of that extent.
int vector_width_of(const tensor_program::Term& term, int64_t extent);

/// Vectorises the loop, as many vectors at a time as it has, up to `vectors`.
void vectorise_by(Steps& steps, const std::string& loop, int64_t extent, int width,
                  int64_t vectors);

/// How many vectors of the innermost loop, and points of the next one, are computed at a time; how
/// many tasks there are for each thread (0: none, nothing: as many as are worth it).
struct LoopSizes {
  int64_t vectors = 1, lines = 1;
  std::optional<int64_t> tasks = {};
};

/// Vectorises the innermost loop and divides the outer ones into tasks.
void schedule_loops(Steps& steps, const Names& loops, const Extents& extents,
                    const tensor_program::Term& value, int threads, const LoopSizes& sizes = {});

}  // namespace collage::native
