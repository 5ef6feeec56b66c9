// Intrinsics: what one instruction of some processors computes, declared as a program over the
// number of its lanes. A step of a schedule
//
//   S.update(0).tensorise(j, r, dot_int16x2, 8);
//
// computes 8 neighbours along j, and all terms that the sum over r adds to them, at once. Its names
// are the loops, those of the intrinsic's result and of its sum in order, and the intrinsic; its
// number is the value of the intrinsic's symbol. The sum must match the intrinsic: S's value is
// compared with the intrinsic's, its arrays with the intrinsic's operands, and they must lie in
// memory as the operands do. Those of the table are instructions that Halide finds; users register
// others (collage/functions.h), also of tiles of two dimensions, which are called.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor_program/program.h"
#include "tensor_program/range.h"

namespace collage::tensor_program {

/// The program has a symbol, the number of lanes; a parameter that all lanes share and one of which
/// each has its own elements, or two of both; and one result over the lanes, a sum.
///
///   program (n = 8) {
///     param A: int16[2];
///     param B: int16[n, 2];
///     result C[j:n] = sum(r:2) int32(A[r]) * int32(B[j, r]);
///   }
/// A user's lowering: adds what the program computes, where its symbol is n, to sums. Arrays lie as
/// the program declares them, aligned like their elements; of a tile, what the first index of the
/// sums, of A and of B selects is `rows[0]`, `rows[1]` and `rows[2]` elements apart.
using IntrinsicCall = void (*)(int64_t n, void* sums, const void* A, const void* B,
                               const int64_t* rows);

struct Intrinsic {
  std::string name;
  Program program;
  /// The largest magnitude of the lanes' elements, if instructions do not compute the sum of larger
  /// ones.
  std::optional<int64_t> lanes_bound = {};
  IntrinsicCall call = nullptr;  ///< null: of the table, or its program's own loops compute it
  bool is_users = false;
  bool is_local = false;  ///< worker processes do not have it

  const Stage& stage() const { return program.stages[0]; }
  /// Products of a term: one, or two, whose sum must fit 16 bits for each two terms.
  size_t products() const { return program.buffers.size() / 2; }
  const Update& update() const { return stage().updates[0]; }
  bool is_tile() const { return stage().axes.size() == 2; }
  int64_t terms() const { return update().over[0].extent; }  ///< that are added to a lane
  DType shared_dtype() const { return program.buffers[0].type.dtype; }
  DType lanes_dtype() const { return program.buffers[1].type.dtype; }
  /// Returns whether values are of its type and within the bound.
  bool takes_lanes(const std::optional<Range>& values) const;
};

/// The table, in order of preference.
const std::vector<Intrinsic>& intrinsics();
/// Registers a user's, once its lowering, if there is one, computed what the program does, on
/// random values for several values of its symbol. kUsage: the name is taken; kBadModel: the
/// program is none of is_dot or is_tile; kVerification: the lowering computes something else.
Status register_intrinsic(const std::string& name, std::string_view program, IntrinsicCall call,
                          bool is_local);
/// Whether there are any that only this process has.
bool has_local_intrinsics();
/// Whether a step of the schedule is by an intrinsic that workers do not have.
bool uses_local_intrinsic(const Program& program);
const Intrinsic* find_intrinsic(std::string_view name);  ///< null when there is none

/// The intrinsic that the step (kTensorise) names; null when there is none.
inline const Intrinsic* find_intrinsic(const Primitive& step) {
  return find_intrinsic(step.names.back());
}
/// The intrinsic's program where its symbol has that value; 0: it has none.
Result<Program> program_for(const Intrinsic& intrinsic, int64_t number);
/// Returns the loads of the intrinsic's parameters, in order, and which loads of the update that
/// the step (kTensorise) names stand for them; or why it does not match the instruction: it needs
/// as many points of the loops of the stage as the instruction's result has, and all of the loops
/// of the sum.
Result<std::vector<std::pair<Term, Term>>> match_tensorised(const Program& program,
                                                            const Stage& stage,
                                                            const Primitive& step,
                                                            const Intrinsic& intrinsic);

}  // namespace collage::tensor_program
