// Emitter: the value of any node of a function of operators at given coordinates, as a term.
//
// Element-wise, broadcasting and injective operators are inlined into the term of their reader;
// the same node at the same coordinates gives the same term, so sharing survives. Reductions
// and statistics of a normalisation become stages of the program. Leaves are buffers of
// parameters and constants, or values that nodes are bound to (the accumulator of a template's
// anchor).
//
// Operators are rows of a table (emit_*.cc): a check that states why a call cannot be emitted,
// and the term.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/integers.h"
#include "base/result.h"
#include "ir/expr.h"
#include "ir/op.h"
#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Channels in one block of the blocked layouts (nChw16c and its 1D and 3D forms).
inline constexpr int kChannelBlock = 16;

/// The layout of a kernel's tensor: row-major, blocks of channels, or channels innermost.
enum class ChannelLayout { kPlain, kBlocked, kLast };

/// Returns the extents of a tensor in memory, outermost first.
Shape physical_shape(const Shape& shape, ChannelLayout layout);

/// The place where an element is read or written. If channels are walked as (block, lane) both are
/// set, and a blocked buffer is indexed without division; its padded lanes exist in memory and hold
/// finite values.
struct Coords {
  std::vector<Term> logical;  ///< outermost first
  Term block, lane;           ///< channel = block * 16 + lane
};

using Access = std::function<Term(const Coords&)>;

/// A value that is stored, not inlined, for schedules of its stages. The dimensions of `total` are
/// the kept ones of the reduced tensor (with the channel split into block and, last, lane if
/// `lanes`), unless `full`: then all dimensions of the tensor.
struct Stored {
  std::string total;
  DType dtype = DType::kFloat32;
  std::vector<std::string> parts;  ///< partial sums, computed inside `total`
  bool lanes = false;
  bool vectorise_parts = false;  ///< the reduction is not along the innermost dimension
};

struct PlacedProgram;  // a called program whose stages are stages here (emit_called.cc)

class Emitter {
 public:
  /// `params`: layouts of the parameters; all that are not plain are alike, and stages of rank 3
  /// and above are walked accordingly. `row_stages`: stores what softmax computes twice, for
  /// schedules that work row by row. `whole_reductions`: reductions along the innermost dimension
  /// are not cut into lanes.
  Emitter(const Function& function, std::vector<ChannelLayout> params, bool row_stages,
          bool whole_reductions = false);

  Term value(const Expr& node, const Coords& at);
  /// Does so for leaf `index` of a tuple-valued node.
  Term leaf(const Expr& node, size_t index, const Coords& at);

  void bind(const Expr& node, Access access) { bound_[node.get()] = std::move(access); }

  bool row_stages() const { return row_stages_; }

  /// Whether stages may consist of updates that set a part each, for who schedules them.
  bool joins_by_parts() const { return joins_by_parts_; }
  void join_by_parts(bool allowed) { joins_by_parts_ = allowed; }

  /// Reduces `element` over `axes` of a tensor of that shape; `finish` turns the total into what is
  /// stored. Done once per (node, slot).
  const Stored& reduce(const CallNode& node, int slot, Combine kind, const Shape& shape,
                       const std::vector<int64_t>& axes, const Access& element,
                       const std::function<Term(Term)>& finish);
  /// Stores `element` at every coordinate, of blocked channels in blocks.
  const Stored& store(const CallNode& node, int slot, const Shape& shape, const Access& element);
  /// Makes a stage of the program whose value at `axes` is the sum of `element` over `over`; both
  /// get their coordinates in order.
  std::string sum_stage(const CallNode& node, int slot, const Shape& axes, const Shape& over,
                        const std::function<Term(const std::vector<Term>& at,
                                                 const std::vector<Term>& over)>& element);
  /// Makes a stage that starts from `start` at every coordinate, and is then updated.
  std::string updated_stage(const CallNode& node, int slot, const Shape& shape, const Access& start,
                            const std::function<Update(const Stage&)>& update);
  /// Makes a stage of parts along the innermost dimension, one behind the other, each of an extent.
  std::string joined_stage(const CallNode& node, int slot, const Shape& shape,
                           const std::vector<std::pair<int64_t, Access>>& parts);
  /// Reads a reduction at coordinates of the reduced tensor (those of reduced axes are ignored).
  static Term read_kept(const Stored& stored, const std::vector<int64_t>& axes, const Coords& at);

  /// Reads an element of a table of constants of the kernel.
  Term table_entry(Tensor table, const Term& index);
  /// Returns the name of a new buffer of constants.
  std::string constant_buffer(Tensor values);
  /// Returns an unused stage name.
  std::string stage_name();
  /// State of emit_called.cc for a call; null at first.
  std::shared_ptr<PlacedProgram>& placed(const CallNode& call) { return placed_[&call]; }

  /// The program so far, to which the caller adds results and schedules.
  Program& program() { return program_; }
  const std::vector<std::unique_ptr<Stored>>& stored() const { return stored_; }

 private:
  struct Memo {
    Coords at;
    size_t leaf;
    Term value;
  };
  Term compute(const Expr& node, size_t leaf, const Coords& at);
  Term param_value(size_t index, const Coords& at);
  Term constant_value(const Expr& node, const Coords& at);
  const Stored* find_stored(const CallNode& node, int slot) const;
  const Stored& keep(const CallNode& node, int slot, std::unique_ptr<Stored> stored);
  Stage next_stage(const Shape& shape);
  /// Stores what one stage computes at every coordinate.
  const Stored& keep_whole(const CallNode& node, int slot, Stage stage);

  Function function_;
  std::vector<ChannelLayout> params_;
  ChannelLayout walked_ = ChannelLayout::kPlain;
  bool row_stages_, whole_reductions_, joins_by_parts_ = false;
  std::unordered_map<const ExprNode*, Access> bound_;
  std::unordered_map<const ExprNode*, std::vector<Memo>> memo_;
  std::unordered_map<const ExprNode*, std::string> constants_;
  std::unordered_map<std::string, size_t> stored_index_;
  std::vector<std::unique_ptr<Stored>> stored_;
  std::unordered_map<const ExprNode*, std::shared_ptr<PlacedProgram>> placed_;
  Program program_;
  size_t names_ = 0;  // stages named so far
};

/// How operators of one name are emitted.
struct EmitRule {
  /// Returns why the call cannot be emitted. Sees types, attributes and integer constants only.
  Status (*check)(const CallNode& call);
  Term (*emit)(Emitter& emitter, const CallNode& call, size_t leaf, const Coords& at);
  /// True if each result element reads one element of each (non-scalar) argument at the same
  /// position, after broadcasting.
  bool elementwise = false;
  /// Axes of the first argument, ascending, along all of which an element of the result depends on
  /// the argument's elements, as for sums and softmax.
  Ints (*reduces)(const CallNode& call) = nullptr;
};

const EmitRule* find_emit_rule(std::string_view op_name);
/// For operators of plug-ins; an operator that has a rule keeps it.
void register_emit_rule(std::string op_name, EmitRule rule);

/// Returns `reduces` of the rule of the call's operator; no axes without one.
Ints axes_reduced_by(const CallNode& call);

/// Returns whether the call's operator is element-wise, or the tensor program that it calls.
bool is_elementwise(const CallNode& call);

using EmitTable = std::unordered_map<std::string, EmitRule>;
void add_elementwise_rules(EmitTable& table);
void add_injective_rules(EmitTable& table);
void add_indexed_rules(EmitTable& table);
void add_window_rules(EmitTable& table);
void add_reduction_rules(EmitTable& table);
void add_product_rules(EmitTable& table);
void add_quantised_rules(EmitTable& table);
void add_sample_rules(EmitTable& table);
void add_called_rules(EmitTable& table);

/// Shared checks of rules: the arguments are all float32, or of a type that can be moved.
Status check_float_args(const CallNode& call);
Status check_movable_args(const CallNode& call);
bool is_movable(DType dtype);
bool is_narrow_integer(DType dtype);  ///< of 8 or 16 bits
/// Returns whether the first argument's elements can be moved and are numbers.
bool is_ordered(const CallNode& call);

/// Returns coordinates of an argument of `from` shape that is broadcast to `to` shape, at `at`.
Coords broadcast_coords(const Shape& from, const Shape& to, const Coords& at);

inline const Shape& arg_shape(const CallNode& call, size_t i = 0) {
  return call.args[i]->tensor_type().shape;
}

int64_t normal_axis_of(const CallNode& call, std::string_view attr, int64_t rank);

}  // namespace collage::tensor_program
