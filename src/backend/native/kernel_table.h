// The kinds of native's kernels: a row each, in the order in which variants are listed. A row lists
// its variants of a function, where it has some, and builds one; a variant's schedule begins with
// the name of its row.
#pragma once

#include <string_view>
#include <vector>

#include "backend/kernel_row.h"
#include "backend/native/codegen/built_kernel.h"
#include "backend/native/codegen/kernel_dump.h"
#include "backend/native/kernel_group.h"

namespace collage::native {

/// A function of which variants are wanted.
struct Problem {
  Function quantised;         ///< flat
  Function flat;              ///< … with products of real numbers for those of quantised tensors
  Result<KernelGroup> group;  ///< of `flat`, or why it is none
  bool stages = false;        ///< computes_stages(flat)
  int threads = 1;
};

Result<Problem> problem_of(const Function& function, int threads);

/// A variant that is built.
struct Request {
  const Function& function;  ///< as Problem's `flat`, or `quantised` where the row wants that
  const Variant& variant;
  std::string_view schedule;  ///< behind the row's name
  int threads = 1;
  KernelDump& dump;
};

struct KernelKind {
  KernelRow row;
  /// Nothing where the row computes no such function. Rows next to one another may share one, which
  /// gives the variants of all of them. Best guess first.
  Result<std::vector<Variant>> (*variants)(const Problem& problem);
  /// May throw Halide's exceptions.
  Result<BuiltKernel> (*build)(const Request& request);
  bool of_quantised = false;
  bool over_symbols = false;
};

const std::vector<KernelKind>& kernel_table();

/// The variants of all rows that may round so much: of those over symbols alone where those have
/// some and are wanted. Or why there are none.
Result<std::vector<Variant>> kernel_variants(const Function& function, RoundingLimit limit,
                                             bool over_symbols, int threads);

/// What a row's schedules begin with.
std::string schedule_of(std::string_view row, std::string_view rest);
/// The row that a schedule begins with, and what follows; null: there is none of that name.
std::pair<const KernelKind*, std::string_view> find_kind(std::string_view schedule);
const KernelRow& kernel_row(std::string_view name);

}  // namespace collage::native
