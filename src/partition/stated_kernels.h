// A cover as a module, so that it can be printed, read and compiled again to the same kernels: each
// is a call of a Primitive function that states its target and variant,
//
//   %1 = fn (%p: …, Primitive=1, Target="native", Variant="tile14x1(float32)->(float32:aBcd16b)") {
//     …
//   };
//   %2 = %1(%0);
//
// and the attribute "conversions" of the function that calls them lists the changes of encoding. A
// Primitive function of a user's module may also state its target alone, or both, or the toolchain
// that compiles it (Compiler); the search decides the rest.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "partition/candidate.h"

namespace collage {

// Returns an attribute that is a text; "" where there is none.
std::string text_attr(const Attrs& attrs, std::string_view name);
// Returns the Primitive function that a call calls, or null.
const FunctionNode* called_primitive(const Expr& expr);

class StatedKernels {
 public:
  explicit StatedKernels(const DataflowGraph& graph);
  // Nodes that are calls of Primitive functions.
  const IndexSet& primitives() const { return primitives_; }
  // The compiler that is stated for a node, or "".
  const std::string& compiler(PostDfsIndex node) const { return compilers_[node]; }
  const std::string& target(PostDfsIndex node) const { return targets_[node]; }
  // Returns whether every node that needs a kernel states both.
  bool are_complete() const { return complete_; }
  // Returns the text of the variant that is stated for a candidate's kernel; "": none.
  const std::string& variant(const CandidatePartition& candidate) const;
  // Returns whether a tensor of that type may be converted so.
  bool allow_conversion(const TensorType& type, const Encoding& from, const Encoding& to) const;
  // Returns the results of the conversions stated for tensors of that type: a tensor may be
  // converted twice, through an encoding that no kernel has.
  std::set<Encoding> converted_to(const TensorType& type) const;

 private:
  IndexSet primitives_;
  std::vector<std::string> compilers_, targets_, variants_;
  std::optional<std::set<std::string>> conversions_;        // none: nothing is stated
  std::map<std::string, std::set<Encoding>> converted_to_;  // by the type's text
  bool complete_ = true;
};

// The attributes of a stated kernel, and the changes of encoding that there are, for write_kernels.
Attrs stated_kernel(const Target& target, const std::string& variant);
struct ConversionStatement {
  TensorType type;
  Encoding from, to;
};
Attrs stated_conversions(std::span<const ConversionStatement> conversions);

}  // namespace collage
