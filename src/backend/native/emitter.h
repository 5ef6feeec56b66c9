// Emitter: the value of any node of a kernel's function at given coordinates, as a Halide
// expression.
//
// Element-wise, broadcasting and injective operators are inlined into the expression of whoever
// reads them; the same node at the same coordinates gives the same expression, so sharing survives.
// What cannot be inlined (reductions, statistics of a normalisation) becomes a `Stage`, a Halide
// function that the builder of the kernel places. Leaves are accesses: buffers of parameters and
// constants, or whatever a template binds (the accumulator of its anchor).
//
// Operators are rows of a table (emit_*.cc): a check that says why a call cannot be emitted, and
// the expression.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/native/access.h"
#include "base/result.h"
#include "ir/expr.h"
#include "ir/op.h"
#include "runtime/encoding.h"

namespace collage::native {

using HExpr = Halide::Expr;

Halide::Type halide_type(DType dtype);
HExpr literal(double value, DType dtype);

/// A function that is stored, not inlined. Its dimensions, innermost first, are the kept dimensions
/// of the reduced tensor (with the channel split into lane and block when `lanes`), unless `full`:
/// then all dimensions of the tensor.
struct Stage {
  Halide::Func total;
  std::vector<Halide::Func> parts;  ///< partial sums, computed inside `total`
  std::vector<int64_t> extents;     ///< of total's dimensions, innermost first
  bool lanes = false;
  bool full = false;
  bool vectorise_parts = false;
};

enum class Reduction { kSum, kProduct, kMax, kMin };

/// A buffer the kernel takes besides its outputs.
struct Binding {
  BufferArg buffer;
  int param = -1;                               ///< parameter of the function, or
  Tensor constant;                              ///< a constant in row-major order, or
  std::shared_ptr<std::vector<float>> packed;   ///< weights packed for a template, or
  std::shared_ptr<std::vector<int32_t>> table;  ///< an index table
  bool ahead = false;                           ///< to be read ahead (weights_ahead.h)
};

class Emitter {
 public:
  /// `blocked`: rank-3-and-above values are walked by channel block and lane.
  Emitter(const Function& function, std::vector<Encoding> inputs, bool blocked, bool row_stages);

  HExpr value(const Expr& node, const Coords& at);
  /// The same of leaf `index` of a tuple-valued node.
  HExpr leaf(const Expr& node, size_t index, const Coords& at);

  void bind(const Expr& node, Access access) { bound_[node.get()] = std::move(access); }
  const BufferArg& param_buffer(size_t index);

  bool blocked() const { return blocked_; }
  bool row_stages() const { return row_stages_; }

  /// Reduces `element` over `axes` of a tensor of that shape; `finish` turns the total into what is
  /// stored. One stage per (node, slot).
  const Stage& reduce(const CallNode& node, int slot, Reduction kind, const Shape& shape,
                      const std::vector<int64_t>& axes, const Access& element,
                      const std::function<HExpr(HExpr)>& finish);
  /// `element` stored at every coordinate.
  const Stage& store(const CallNode& node, int slot, const Shape& shape, const Access& element);
  /// Reads a reduction at coordinates of the reduced tensor (those of reduced axes are ignored).
  HExpr read_kept(const Stage& stage, const std::vector<int64_t>& axes, const Coords& at) const;

  Halide::Expr table_entry(std::vector<int32_t> table, const HExpr& index);

  std::vector<Binding>& bindings() { return bindings_; }
  std::vector<std::unique_ptr<Stage>>& stages() { return stages_; }

 private:
  struct Memo {
    Coords at;
    size_t leaf;
    HExpr value;
  };
  HExpr compute(const Expr& node, size_t leaf, const Coords& at);
  HExpr constant_value(const Expr& node, const Coords& at);

  Function function_;
  std::vector<Encoding> inputs_;
  bool blocked_, row_stages_;
  std::unordered_map<const ExprNode*, Access> bound_;
  std::unordered_map<const ExprNode*, std::vector<Memo>> memo_;
  std::unordered_map<const ExprNode*, size_t> constants_;
  std::unordered_map<size_t, size_t> params_;
  std::unordered_map<std::string, size_t> stage_index_;
  std::vector<Binding> bindings_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

/// How operators of one name are emitted.
struct EmitRule {
  /// Why the call cannot be emitted, if so. Sees types and attributes only.
  Status (*check)(const CallNode& call);
  HExpr (*emit)(Emitter& emitter, const CallNode& call, size_t leaf, const Coords& at);
  /// Each result element reads one element of each (non-scalar) argument at the same position,
  /// after broadcasting.
  bool elementwise = false;
};

const EmitRule* find_emit_rule(std::string_view op_name);

using EmitTable = std::unordered_map<std::string_view, EmitRule>;
void add_elementwise_rules(EmitTable& table);
void add_injective_rules(EmitTable& table);
void add_window_rules(EmitTable& table);
void add_reduction_rules(EmitTable& table);

/// Coordinates of an argument of `from` shape that is broadcast to `to` shape, read at `at`.
Coords broadcast_coords(const Shape& from, const Shape& to, const Coords& at);

int64_t normal_axis_of(const CallNode& call, std::string_view attr, int64_t rank);

}  // namespace collage::native
