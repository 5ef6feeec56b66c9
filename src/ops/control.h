// Control flow, as operators of functions. The functions are literals, closed: what they read comes
// as arguments.
//
//   control.if(condition, then, else, a, b, …)       then(a, b, …) or else(a, b, …)
//   control.loop(trips, condition, body, states…, scanned…, invariants…, states=S, scanned=N,
//   rows=R)
//
// A loop runs body(i, states…, slices…, invariants…) -> (goes_on, states…, row…) for i = 0, 1, … <
// trips while its condition, then goes_on of the iteration before, holds. Slices are row i of the
// scanned tensors, whose first extent is R. The result is a tuple of the last states and of one
// tensor of R rows for each row that the body gives, 0 where no iteration gave one; with either, it
// runs at most R times. `trips` and i are int64, conditions bool, all scalars.
//
//   %0 = fn (%i: int64, %s: float32, %x: float32) -> (bool, float32) { (True, add(%s, %x)) };
//   %1 = control.loop(3i64, True, %0, 0f, %xs, states=1, scanned=1, rows=3);      the sum of xs
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"

namespace collage {

inline constexpr const char* kIfOp = "control.if";
inline constexpr const char* kLoopOp = "control.loop";

bool is_control_op(std::string_view op);
bool is_control(const CallNode& call);
bool is_control_flow(const Function& function);  // one such call alone

inline constexpr size_t kLoopBody = 2, kFirstOperand = 3;  // arguments; operands follow in both

struct LoopForm {
  size_t states = 0, scanned = 0;
  int64_t rows = -1;  // none
  // Most iterations for so many trips.
  int64_t most(int64_t trips) const { return rows >= 0 && rows < trips ? rows : trips; }
};
LoopForm loop_form(const CallNode& call);

// A loop whose end depends on values runs at most so often where no user runs it: on the random
// inputs of checks it might not end.
inline constexpr int64_t kMostCheckedIterations = 4096;
bool has_certain_end(const CallNode& loop);

// Evaluates one of these calls on the leaves of its arguments; `run` runs its functions.
using RunFunction = std::function<Result<std::vector<Tensor>>(const Function& function,
                                                              std::span<const Tensor> inputs)>;
Result<std::vector<Tensor>> evaluate_control(const CallNode& call, std::span<const Tensor> inputs,
                                             const RunFunction& run);

}  // namespace collage
