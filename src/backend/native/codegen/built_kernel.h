// A scheduled Halide pipeline, and what its code is called with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backend/native/codegen/translate.h"
#include "runtime/updating_kernel.h"

namespace collage::native {

struct BuiltKernel {
  Halide::Pipeline pipeline;
  std::vector<Binding> bindings;                     ///< arguments in order, before the results
  std::vector<std::vector<int64_t>> result_extents;  ///< innermost first
  std::vector<Halide::Type> result_types;
  bool checked = false;  ///< the code checks, before it runs, that it stays inside its buffers
  bool calls_library = false;                  ///< a stage is an external function
  std::vector<Halide::Argument> symbols = {};  ///< numbers that the code takes behind the bindings,
  std::vector<int32_t> symbol_values = {};     ///< and which
  /// What the code follows from (program_key.h): with symbols alone, else beside the function and
  /// its variant.
  std::string key = {};
  std::vector<UpdatingKernel::Update> updates = {};
  /// Parameters that are read as indices, and into how many elements.
  std::map<int, int64_t> indexed = {};
};

/// A scheduled program, and how it is translated.
struct ScheduledProgram {
  tensor_program::Program program;
  std::string key = {};      ///< BuiltKernel::key; empty: the program's own
  bool whole = false;        ///< as Translator's
  bool checked = false;      ///< as BuiltKernel's
  bool reads_ahead = false;  ///< large constants (weights_ahead.h)
};

/// May throw Halide's exceptions, as what follows.
BuiltKernel translated(const ScheduledProgram& scheduled);

/// Makes `outputs` the kernel's pipeline: applies the translator's schedule, takes its arguments
/// and has Halide's own lowering followed by that of weights that are read ahead, of pairs of
/// products, of reductions within vectors, and of limits.
void finish(BuiltKernel& built, Translator& translator, const std::vector<Halide::Func>& outputs);

}  // namespace collage::native
