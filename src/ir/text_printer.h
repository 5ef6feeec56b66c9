// The text form of functions and modules: Relay text, version 0.0.5. Printed text parses back
// (ir/text_parser.h) to a structurally equal module, and printing that gives the same text.
//
//   #[version = "0.0.5"]
//   program @scale {
//     param A: float32[1, 8];
//     result C[i:1, j:8] = A[i, j] * 2.0f;
//   }
//   extern @product(Tensor[(1, 4), float32], Tensor[(4, 8), float32]) = "cblas_sgemm";
//   external_mods["sum"] = ("onednn", "sum", meta[relay.Constant][1] /*Tensor[(20786), uint8]*/);
//   def @main(%x: Tensor[(1, 4), float32]) -> Tensor[(1, 8), float32] {
//     %0 = nn.dense(%x, meta[relay.Constant][0] /*Tensor[(8, 4), float32]*/);
//     nn.relu(%0)
//   }
//
//   #[metadata]
//   {"relay.Constant": [{"dtype": "float32", "shape": [8, 4], "values": [0.5, …]}]}
//
// Scalars are literals: 0.5f, 1, 1i64, True, 2f64. Attributes equal to the operator's default are
// left out. tensor_program/program_text.h has the form of programs. Names that are no identifiers
// are quoted: %"input:0". A variable whose name is already taken in the same top-level function is
// renamed.
#pragma once

#include <collage/tensor.h>

#include <filesystem>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/module.h"

namespace collage {

struct PrintOptions {
  enum class Constants {
    kMeta,       // every constant in the metadata section
    kSideFile,   // those of more than `inline_limit` elements in `side_tensors`
    kShapeOnly,  // those of more than `inline_limit` elements by type only: the parser must be
                 // given them; integers of more than 8 bits and booleans among them also by
                 // SHA-256, or their value where all are equal
  };
  Constants constants = Constants::kMeta;
  int64_t inline_limit = 64;
  // Constants (the storage of their values) that are printed by their type alone.
  std::unordered_set<const void*> by_type_only;
  bool show_types = false;  // /* ty=… */ after each binding
  // With kSideFile: the file's name (no folder) for the text, and the list that receives the
  // tensors for it, in order. `save_module` does both.
  std::string side_file;
  std::vector<Tensor>* side_tensors = nullptr;
};

std::string to_text(const Module& module, const PrintOptions& options = {});
std::string to_text(const Function& function, const PrintOptions& options = {});  // a bare `fn`

// Returns the function as text without anything that does not influence how it is computed:
// parameters are %p0, %p1 …; the attributes "Compiler", "global_symbol", "exclude", "pin" and
// "name" (structural.h) are left out; constants of more than one element that hold real numbers or
// integers of 8 bits are there by type only, others as with kShapeOnly. Functions that differ only
// in names and weights have equal texts.
std::string canonical_text(const Function& function);

// Writes `path` and, if there are large constants, `path`.bin; each atomically, the text last.
Status save_module(const Module& module, const std::filesystem::path& path);

}  // namespace collage
