// Effects: what a call does besides computing its result. A call of an operator whose attribute
// "effects" is set has some, and so has one of a function that does, or that calls such. Passes,
// partitioning and plans know no order but that of data, so calls with effects depend on one
// another by the operator after(x, y), which is x, once y is computed:
//
//   %0 = @log(%x);                  %0 = @log(%x);
//   %1 = @log(%y);      becomes     %1 = @log(after(%y, %0));
//   exp(%x)                         after(exp(%x), %1)
//
// Where data orders them already, nothing is added.
#pragma once

#include <map>
#include <vector>

#include "ir/module.h"

namespace collage {

inline constexpr const char* kEffectsAttr = "effects";
inline constexpr const char* kAfterOp = "after";

// Whether the operator that it calls has effects.
bool has_effects(const CallNode& call);
// Whether that operator runs functions (ops/control.h), which may have some.
bool runs_functions(const CallNode& call);

// The calls in functions and function literals in the order of the text, those included whose
// results nobody reads.
using CallsOfText = std::map<Function, std::vector<Expr>>;

// Makes calls with effects depend on the one before, and results on the last one, in all functions
// of the module. A function that others call begins behind its parameters, and its callers make
// its arguments wait. kBadModel: one of them has nothing that could wait.
Status order_effects(Module& module, const CallsOfText& calls);

}  // namespace collage
