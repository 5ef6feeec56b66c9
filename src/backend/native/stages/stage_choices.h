// Schedules of programs in which a user's tensor program is a part, or which have no template:
// whatever stages they have. What a schedule says, as the name of a variant has it:
//
//   stages       each stage by itself, divided among threads
//   rows 16      a task computes everything that 16 rows of the result need, where it has rows
//   packed       products read what columns multiply from panels that are copied first
//   vectors 2    the innermost loop takes so many vectors at a time (element-wise stages)
//   lines 4      the next loop takes so many points at a time (element-wise stages and windows)
//   tasks 4      for each thread; 0: the loops of a stage are not divided among threads
//   steps 8      of a sum are written out one after the other; 0: all of a few
//   tile 6x2     sums are computed in tiles of so many rows and vectors
//   dot_int16x2  products by this intrinsic (tensor_program/intrinsic.h), from copies
//   ahead        constants that stay in no cache are read ahead (weights_ahead.h)
//   scalar       sums are computed column by column, not in vectors of columns
//   keep 1       what a stage must save at least to be kept instead of computed where it is read
//
// What is not said follows from the stages, by estimates. A handful is worth measuring in any case
// (`stage_schedules`); the others are a space to search (backend/schedule_space.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor_program/program.h"
#include "tensor_program/stage_plan.h"

namespace collage::native {

struct StageSchedule {
  int64_t rows = 0;  ///< of the result, in a task; 0: stage by stage
  bool packed = false, ahead = false;
  std::string intrinsic = {};  ///< empty: none
  int64_t vectors = 1, lines = 1, steps = 4;
  std::optional<int64_t> tasks = {};
  int64_t tile_rows = 0, tile_vectors = 0;  ///< 0: by estimate
  bool scalar = false;
  int64_t keep = tensor_program::kKeeping;  ///< additions an element

  std::string to_string() const;
  bool operator==(const StageSchedule&) const = default;
};

/// Of that text; nothing where it is no schedule's.
std::optional<StageSchedule> parse_stage_schedule(std::string_view text);

/// Those worth measuring for a program without schedule, best guess first.
std::vector<StageSchedule> stage_schedules(const tensor_program::Program& program, int threads);

/// Likewise those by instructions of this processor that multiply small integers; none where the
/// program has no such products.
std::vector<StageSchedule> dot_schedules(const tensor_program::Program& program, int threads);

/// The fields of a schedule in which those of one program may differ, and what each may be.
struct StageDecision {
  std::string name;
  std::vector<int64_t> options;  ///< the one that estimates favour is the first
};
std::vector<StageDecision> stage_decisions(const tensor_program::Program& program);
/// An option of each decision.
StageSchedule decided_schedule(const std::vector<StageDecision>& decisions,
                               const std::vector<size_t>& choice);
/// The options that make this schedule; nothing where some field has another value.
std::optional<std::vector<size_t>> choice_of(const std::vector<StageDecision>& decisions,
                                             const StageSchedule& schedule);

}  // namespace collage::native
