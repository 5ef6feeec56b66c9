// Which sub-graphs native offers to compute. The search decides which of them are worth it, amid
// those of other targets, so wherever another toolchain's kernel could end there is a cut:
//
//   an anchor that has a template   alone; with each prefix of the element-wise chain that only it
//                                   feeds; alone and with the whole chain also with what can be
//                                   folded into reading its operands (its prologue)
//   behind any anchor               each tail of that chain: the anchor may be another toolchain's
//   any other call                  alone; with all of its producers that one kernel computes well
//                                   (its group); the same without what is likely an anchor's
//                                   epilogue
//   a group that no later call's    behind each call of it: what follows that call, and all that
//   group takes in                  that call's own group leaves
//   a call of a tensor program      alone; what is element-wise like an operator of that kind; any
//                                   other like an anchor, and in groups of any other calls but
//                                   anchors, programs among them (kMostPrograms at most)
//
//     conv -> bias -> add -> relu      of native: conv, conv+bias, conv+bias+add, all four;
//              other -^                bias+add+relu, add+relu, relu; bias, bias+add, add
//
// Groups that are cut are disjoint, so there are at most 5 candidates a call, 2 more for each
// anchor whose chain it is in, and 4 an anchor: the number grows as the graph does. A chain of n
// calls has 3n. Limits (kMostCalls, kMostPrologue) mark the candidates that they cut short.
#pragma once

#include <string>

#include "backend/native/kernel_group.h"
#include "partition/rules/rule.h"

namespace collage::native {

/// Why a call cannot be computed in any group, if so.
using CheckCall = Status (*)(const CallNode& call);

/// `name`: of the rule, with which the labels of its candidates start.
PartitionRulePtr make_native_rule(const std::string& name = "native", CheckCall check = check_call);

}  // namespace collage::native
