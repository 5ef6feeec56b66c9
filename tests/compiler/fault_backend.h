// A backend that misbehaves on request: it computes one-input element-wise operators rightly, by
// the reference, and then does what its target option asks for. Everything else about it is an
// ordinary backend.
//
//   faulty -fault=segv             the variant "bad" crashes when it runs; "good" is right
//   faulty -fault=segv -after=9    … from its tenth run on, when it is timed
//   faulty -fault=segv -at=compile … when it is compiled; "compile_for_the_program": not in
//                                  workers; "run_in_the_program": when it runs, not in workers;
//                                  "variants": when it is asked for variants; "rule": for its rule
//   faulty -fault=hang -once=1     … and not again, in any process, as by chance
//   faulty -fault=segv -only=1     there is no variant "good"
//   faulty -fault=lie0 -op=nn.dense  it takes calls of that operator instead, of one float32 result
//   faulty -fault=nan -above=2     … in runs on an input with a magnitude above that, none above a
//                                  hundred
//   faulty -schedules=1            there are schedules, which a search may draw: those of the first
//                                  decision's last option are faster than all others; those of the
//                                  second decision's last option fail
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace collage::testing {

std::unique_ptr<Backend> make_fault_backend();
// Its version, in this process: a part of every cost key.
std::string& fault_version();
// Lies (measure/lies.h) that its kernels told in this process.
int lies_told();
// The names that -fault takes.
std::vector<std::string> fault_names();

// The operators, all backends of this build, and this one.
void register_all_and_faulty();

}  // namespace collage::testing
