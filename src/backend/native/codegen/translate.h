// From tensor programs to Halide: terms become expressions, stages functions, and the primitives of
// the schedule calls of the same name. What a program says is what is compiled; only how functions
// like exp are computed is decided here (halide_math.h).
//
// Stages become functions when they are first read, so a program may grow while a template reads
// it.
#pragma once

#include <Halide.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/native/codegen/access.h"
#include "backend/native/codegen/halide_conversions.h"
#include "backend/native/codegen/halide_math.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/intrinsic.h"
#include "tensor_program/program_key.h"

namespace collage::native {

/// A buffer the kernel takes besides its outputs.
struct Binding {
  BufferArg buffer;
  int param = -1;                      ///< parameter of the function, or
  Tensor constant;                     ///< a constant in row-major order, or
  std::shared_ptr<const void> packed;  ///< weights packed for a template,
  size_t packed_bytes = 0;             ///< that many
  bool ahead = false;                  ///< to be read ahead (weights_ahead.h)
};

class Translator {
 public:
  /// Variables that are no loops of the stage, by name; and what terms became under them.
  struct Scope {
    std::map<std::string, HExpr> variables;
    std::unordered_map<const tensor_program::TermNode*, std::pair<tensor_program::Term, HExpr>>
        memo;
    const tensor_program::Intrinsic* intrinsic = nullptr;  ///< that the sum is computed by
  };

  /// `whole`: stages that are computed first are computed from end to end, and splits of stages'
  /// values that are not guarded end there, the last part moved back. Otherwise those of stages
  /// that are no results run to the end of that part.
  explicit Translator(const tensor_program::Program& program, bool whole = false);

  HExpr expr(const tensor_program::Term& term, Scope& scope);
  /// The function of a stage; its dimensions are the stage's, innermost first. A result of bools is
  /// stored as bytes.
  Halide::Func func(const std::string& stage);
  /// Schedules every stage that has become a function. Once, at the end.
  void apply_schedule();

  /// An extent: a number, or an expression over the program's symbols.
  HExpr extent(const tensor_program::Term& size, int64_t number);
  /// The program's symbols, which the code takes as numbers, in their order.
  std::vector<Halide::Argument> symbols() const;

  /// Arguments in the order in which they were first read.
  std::vector<Binding>& bindings() { return bindings_; }
  /// Whether a stage is an external function.
  bool calls_library() const { return calls_library_; }
  bool calls_intrinsics() const { return calls_intrinsics_; }  ///< of users
  /// Whether some products are those of pair_products.h.
  bool multiplies_pairs() const { return multiplies_pairs_; }

 private:
  /// A stage as a function, and the loops of each update that walk over its reduction.
  struct Translated {
    Halide::Func func;
    std::vector<std::map<std::string, Halide::RVar>> walked;
  };
  const Binding& buffer(const std::string& name);
  /// With the fewest instructions, where it is rounded and cut off and vectors are wide; else
  /// undefined.
  Halide::Expr rounded(const tensor_program::Term& term, Scope& scope);
  HExpr loaded(const tensor_program::TermNode& term, std::vector<HExpr> at);
  void define_external(const tensor_program::Stage& stage, Halide::Func& func,
                       const std::vector<Halide::Var>& vars);
  void define(const tensor_program::Stage& stage, Translated& made);
  template <typename Target>
  void apply(Target target, const tensor_program::Primitive& step,
             std::map<std::string, Halide::RVar>* walked,
             Halide::TailStrategy masked = Halide::TailStrategy::Predicate);
  /// The axis of which a masked step makes vectors; else null.
  const tensor_program::Axis* masked_axis(const tensor_program::Primitive& step) const;

  void bound_by(const tensor_program::Stage& stage, Halide::Func& func);

  const tensor_program::Program& program_;
  bool whole_;
  std::vector<Halide::Param<int32_t>> symbols_;
  std::map<std::string, Translated> stages_;
  std::unordered_map<std::string, size_t> buffers_;
  std::vector<Binding> bindings_;
  bool calls_library_ = false, calls_intrinsics_ = false, multiplies_pairs_ = false;
  bool is_index_ = false;  // what is translated is a position in an array
};

/// Nodes of a function as a template reads them: emitted as terms over its coordinates, then
/// translated.
class Reader {
 public:
  Reader(tensor_program::Emitter& emitter, Translator& translator)
      : emitter_(emitter), translator_(translator) {}

  HExpr value(const Expr& node, const Coords& at);
  /// The same where `accumulator`, a float32 node, has that value, not above `bound` if there is
  /// one.
  HExpr value_after(const Expr& accumulator, const HExpr& sum, std::optional<double> bound,
                    const Expr& node, const Coords& at);
  /// As tensor_program/magnitude.h has it.
  std::optional<double> magnitude(const Expr& node);

  /// What the code follows from besides the function and its variant: the emitter's program, and
  /// the terms that were read. They depend on values of constants, as of what is known to be small.
  std::string key() const;

 private:
  tensor_program::Term term(const Expr& node, const Coords& at);
  tensor_program::Term coordinate(const HExpr& value);

  tensor_program::Emitter& emitter_;
  Translator& translator_;
  std::vector<HExpr> coordinates_;  // number i is variable x<i>
  Translator::Scope scope_;
  tensor_program::ProgramKey read_;
};

}  // namespace collage::native
