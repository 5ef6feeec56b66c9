// Program: a loop-level program as plain data. Stages, each an array defined at every point by a
// term over other arrays, or filled by updates, or by a call of an external function; and a
// schedule, a list of primitives that say how stages are looped over and where they are computed,
// never what they hold.
//
//   program {
//     param A: float32[128, 128];
//     const B: float32[128, 128];
//     stage P[j1:8, k:128, j0:16] = B[k, j1 * 16 + j0];
//     result C[i:128, j:128] = sum(k:128) A[i, k] * P[j / 16, k, j % 16];
//     schedule {
//       P.compute_root();
//       C.vectorise(j, 16);
//       C.parallel(i);
//     }
//   }
//
// Extents may be expressions over symbols (extent.h), so that one program serves many shapes; it
// says for which values it was made, and numbers of its extents are those:
//
//   program (n = 211) {
//     param A: float32[n, 768];
//     result C[i:n, j:768] = max(A[i, j], 0.0f);
//   }
//
// Arrays are dense and row-major, indices outermost first. A stage reads what stands above it. How
// operators become stages is emit.h's; what a program computes evaluate.h's; how its text looks
// program_text.h's.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ir/type.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// A name in extents, and its value. Terms may read it like an index variable.
struct Symbol {
  std::string name;
  int64_t value = 1;
  bool operator==(const Symbol&) const = default;
};

struct Axis {
  std::string name;
  int64_t extent = 1;
  Term size = {};  ///< the extent over symbols, where it is no number alone
  bool operator==(const Axis& other) const;
};
/// The axes of a shape, outermost first: prefix0, prefix1, …
std::vector<Axis> numbered_axes(std::string_view prefix, const Shape& shape);

/// A parameter, or a constant (whose values may be missing, as in text).
struct Buffer {
  std::string name;
  TensorType type;
  bool is_constant = false;
  Tensor value = {};
  int param = -1;  ///< which parameter of the emitted function it holds, where it was emitted
  std::string scope = {};  ///< the memory scope it lies in; empty: any
  /// As Axis::size, one a dimension; empty if all are numbers.
  std::vector<Term> sizes = {};
};

enum class Combine { kSet, kSum, kProduct, kMax, kMin };

/// For every point of `over`: stage[at] = combine(stage[at], value). Points are visited in order,
/// but where `combine` is no kSet their order does not matter. The value may read stage[at].
struct Update {
  std::vector<Term> at;    ///< terms over the stage's axes and `over`
  std::vector<Axis> over;  ///< outermost first
  Combine combine = Combine::kSet;
  Term value;
};

struct Stage;
/// The loops of an update, outermost first: the stage's axes that its indices name, for it does not
/// depend on the others, then `over`.
std::vector<Axis> walked_axes(const Stage& stage, const Update& update);

/// destination = label(inputs): whole arrays, as in tensor_program/external.h.
struct ExternalCall {
  std::string label;                ///< empty: none
  std::vector<std::string> inputs;  ///< buffers and stages
  bool operator==(const ExternalCall&) const = default;
};

/// Either `value`, or `external`, or updates alone: then the first one says what the stage starts
/// from, the neutral element of its `combine`, or zeros for kSet. Updates may follow a value too.
struct Stage {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Axis> axes;  ///< outermost first
  Term value;
  std::vector<Update> updates;
  ExternalCall external = {};
  bool is_result = false;
  std::string scope = {};  ///< of a result: the memory scope it is left in; empty: any

  Shape shape() const;
  std::vector<Term> indices() const;  ///< its axes as variables
};

enum class PrimitiveKind {
  kSplit,         ///< (loop, outer, inner, factor): inner runs to factor
  kFuse,          ///< (inner loop, outer loop, fused)
  kReorder,       ///< (loops…), innermost first
  kVectorise,     ///< (loop) or (loop, width)
  kTensorise,     ///< (axes…, axes of the terms…, intrinsic, lanes): intrinsic.h
  kUnroll,        ///< (loop)
  kParallel,      ///< (loop)
  kComputeAt,     ///< (stage, loop): computed anew in each iteration of that stage's loop
  kComputeRoot,   ///< (): computed whole before what reads it
  kInline,        ///< (): computed where it is read; the default
  kAllowRaces,    ///< (): the points of an update's `over` may run side by side
  kHoistStorage,  ///< (stage, loop): its memory is had once for all iterations of that loop
};

/// One step of a schedule. `guarded` splits do not run past the extent; others may, up to the next
/// multiple of the factor, where that is harmless. `masked` vectors are of a whole axis, and their
/// last one reads and writes only elements inside.
struct Primitive {
  std::string stage;
  int update = -1;  ///< of the stage; -1: its value (or what it starts from)
  PrimitiveKind kind = PrimitiveKind::kInline;
  std::vector<std::string> names;
  int64_t number = 0;  ///< factor or width; 0: none
  bool guarded = false, masked = false;
  Term size = {};  ///< of a split: the factor over symbols, in place of the number
  bool operator==(const Primitive& other) const;
};

/// Whether the step names a loop of another stage, the first of its names.
inline bool is_at_loop(const Primitive& step) {
  return step.kind == PrimitiveKind::kComputeAt || step.kind == PrimitiveKind::kHoistStorage;
}

struct Program {
  std::vector<Symbol> symbols = {};
  std::vector<Buffer> buffers;
  std::vector<Stage> stages;
  std::vector<Primitive> schedule;

  const Buffer* find_buffer(std::string_view name) const;
  const Stage* find_stage(std::string_view name) const;
  Stage* find_stage(std::string_view name);
  /// Returns the type of a buffer or stage, which must exist.
  TensorType type_of(std::string_view name) const;
  std::vector<std::string> results() const;  ///< names of the result stages, in order

  /// Returns the text that program_text.h parses.
  std::string to_string() const;
};

/// Checks a program. It fails for names that are missing or defined twice, indices of another
/// number than the array has dimensions, types that differ, unbound variables, arrays or loops of
/// too many points to count, results that are none, and schedules of missing stages or with bad
/// arguments. Indices may be out of range: accesses.h. `where` gets the name of the buffer or stage
/// that is wrong, "schedule", or nothing.
Status verify(const Program& program, std::string* where = nullptr);

/// Compares stages and schedules over buffers of equal types, and values if both sides have
/// them.
bool equal(const Program& a, const Program& b);

/// Calls `visit` for every term of the stage, the indices of updates included.
template <typename Visit>
void for_each_term(const Stage& stage, const Visit& visit) {
  if (stage.value.defined()) visit(stage.value);
  for (const Update& update : stage.updates) {
    for (const Term& index : update.at) visit(index);
    visit(update.value);
  }
}

/// Returns the names that a term, or a stage, loads from; in order, each once. Not the stage's own.
std::vector<std::string> loaded_names(const Term& term);
std::vector<std::string> loaded_names(const Stage& stage);

/// Returns the neutral element, which a stage of updates alone starts from; zero for kSet.
Term neutral(Combine combine, DType dtype);
Term combined(Combine combine, const Term& a, const Term& b);
/// Combines a power of two terms, pair by pair, so that rounding errors stay small.
Term combined_pairwise(Combine combine, std::vector<Term> terms);

}  // namespace collage::tensor_program
