// The loops around a block of script, and its axes, each of which is one loop.
//
//   for i, j, k in T.grid(16, 24, 32):
//       with T.block("Y"):
//           vi, vj, vk = T.axis.remap("SSR", [i, j, k])
#pragma once

#include <string>
#include <vector>

#include "tensor_program/program.h"
#include "tensor_program/script/script_values.h"

namespace collage::tensor_program {

struct ScriptLoop {
  std::string name;
  int64_t extent = 1;
  char kind = 0;          ///< S, R, O (opaque), or 0: not said
  std::string axis = {};  ///< its name in the program
  std::string also = {};  ///< its name in the block

  bool indexes_stage() const { return kind != 'R' && kind != 'O'; }
};
/// Of each dimension the loop that is its index and walks all of it; or null.
using PlainLoops = std::vector<ScriptLoop*>;

class ScriptLoops {
 public:
  ScriptLoops(TextReader& reader, ScriptScope& scope) : reader_(reader), scope_(scope) {}

  bool empty() const { return loops_.empty(); }
  size_t size() const { return loops_.size(); }
  void clear();
  const ScriptLoop* find(std::string_view name) const;

  /// Reads `for i, j in T.grid(4, 8)`; the loops get into the scope by their own names.
  Status read();
  /// Reads `vi, vj = T.axis.remap("SR", [i, j])`, or `vi = T.axis.spatial(16, i)`.
  Status read_axes();

  PlainLoops plain(const std::vector<Term>& indices, const Shape& shape);
  /// Names the loops of an update with these indices: those that are axes of the stage as these.
  /// Returns the others.
  std::vector<Axis> name_for_update(const Stage& stage, const std::vector<Term>& indices,
                                    const PlainLoops& plain);

 private:
  Status bind(const std::string& axis, char kind);
  void use_own_names();
  void set_variables();

  TextReader& reader_;
  ScriptScope& scope_;
  std::vector<ScriptLoop> loops_;  // outermost first
};

}  // namespace collage::tensor_program
