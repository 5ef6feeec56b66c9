// Programs that many threads of an application run: whether each run gives the bits that the
// program gave when nobody else ran.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "runtime/on_threads.h"

namespace collage::testing {

bool same_bits(const std::vector<Tensor>& some, const std::vector<Tensor>& others);

// A program with some inputs, different ones for each caller, and what it gave for them when it was
// made.
class Rehearsed {
 public:
  // kInternal where two runs one after the other differ: then nothing can be said.
  static Result<Rehearsed> make(const Model& model, const ProgramOptions& options, int callers);

  // "" where so many runs for that caller give the same bits again.
  std::string run(int caller, int runs);
  // The same in a context of the caller's own, made now.
  std::string run_in_context(int caller, int runs);
  const CompileReport& report() const { return program_->impl().report; }

 private:
  std::unique_ptr<Program> program_;
  std::vector<std::vector<Tensor>> inputs_, expected_;  // by caller
};

}  // namespace collage::testing
