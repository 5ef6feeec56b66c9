// Fuzzing: a target reads inputs that nobody vouches for, and may refuse them, but not crash, hang,
// eat the memory, leak or trip a sanitizer. Inputs are seeds, taken from other tests, that a
// mutator has changed; each depends on its number alone.
//
//   COLLAGE_FUZZ_FIRST=100000   numbers the inputs from there: others than those of every day
//   COLLAGE_FUZZ_INPUTS=5000    how many, whatever the test says
//   COLLAGE_FUZZ_FILE=path      runs that file alone: what a failure has left
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fuzz/random.h"

namespace collage::fuzz {

// How far an input came. A first parse is of the syntax: JSON, TOML, a protobuf, tokens in an order
// that the grammar knows.
enum class Outcome { kNoSyntax, kRefused, kAccepted };

struct FuzzTarget {
  std::string name;
  std::vector<std::string> seeds;
  std::function<std::string(Random& random)> make;       // an input
  std::function<Outcome(const std::string& input)> run;  // failures: as gtest's
};

// Runs so many inputs. Fails where an input does or takes longer than a minute, where the memory in
// use passes a few GB, where memory leaks (with LeakSanitizer), or where fewer than half of the
// inputs get past the first parse. The counts go to the standard output.
void run(const FuzzTarget& target, int inputs);

// The targets.
FuzzTarget importer();         // ONNX models and what they keep outside
FuzzTarget programs();         // ONNX models, to compiled programs and their results
FuzzTarget relay();            // Relay text, to simplified modules
FuzzTarget tensor_programs();  // their text, to what they compute
FuzzTarget partition_config();
FuzzTarget database();          // rows, to the costs they stand for
FuzzTarget reports();           // JSON reports, to every view of them
FuzzTarget artifacts();         // files of programs, to their results
FuzzTarget staged_artifacts();  // files of models whose shapes a run decides

// Compiled kernels are kept there; kernels that are tried have little time and memory.
void use_scratch_cache();
// A folder of this process for files that a target reads; gone with it.
const std::string& scratch_folder();

}  // namespace collage::fuzz
