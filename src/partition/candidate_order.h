// Sorts candidates by the highest node inside, equals in the given order: the order in which rules
// return them (rules/rule.h). Each is moved once.
#pragma once

#include "partition/candidate.h"

namespace collage {

void sort_by_last_node(std::vector<CandidatePartition>& candidates);

}  // namespace collage
