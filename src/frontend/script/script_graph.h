// Graph functions in script:
//
//   def main(x: R.Tensor[(16, 32), "float32"], w: R.Tensor[(32, 24), "float32"]):
//       with R.dataflow():
//           lv0 = R.call_tir(mm, (x, w), (16, 24), dtype="float32")
//           lv1: R.Tensor[(384,), "float32"] = R.flatten(lv0)
//           gv0 = R.exp(lv1)
//           R.output(gv0)
//       R.call_packed("custom_inplace_update", gv0)
//       return gv0
//
// R.NAME is the operator NAME or nn.NAME, whose attributes have names. A call of a function whose
// result nothing uses has effects, or updates arguments, which stand for its results from there on:
// those that its registration or definition says; of a label that nobody knows the only one.
// R.const(shape=(2, 3)) is a constant that somebody else supplies, in the order of the text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/name_supply.h"
#include "frontend/script/script_values.h"
#include "ir/effects.h"
#include "ir/module.h"
#include "ir/text_parser.h"

namespace collage::tensor_program {

/// What the functions of a module share while they are read.
struct ScriptModule {
  TextReader& reader;
  const ParseOptions& options;
  ScriptScope scope = {};  ///< its numbers alone
  std::string name = {};   ///< of the class
  Module module = {};
  std::map<std::string, Expr> globals = {};  ///< functions that may be called by now
  NameSupply names = {};                     ///< of all that is defined
  size_t constants = 0;                      ///< of those that somebody supplies, so far
  CallsOfText calls = {};                    ///< of functions that are read by now

  void define(const std::string& name, std::shared_ptr<const AbstractFunction> function);
};

/// R.Tensor[(2, 3), "float32"] or R.Tuple(…)
Result<Type> read_script_type(ScriptModule& module);

/// Reads from behind `R.const(`: a number or lists of them and an element type, an entry as the
/// metadata section of Relay text has them, or a shape.
Result<Expr> read_script_constant(ScriptModule& module, const Token& start);

struct ScriptSignature {
  Token start;  ///< the word `def`
  std::string name;
  std::vector<Expr> params;
  std::optional<Type> result;
  Lexer::Position body;  ///< of the ':'
};
/// Reads from '(' up to the ':'.
Result<ScriptSignature> read_script_signature(ScriptModule& module, const Token& start,
                                              const std::string& name);
/// Reads from the ':' on.
Result<Function> read_script_body(ScriptModule& module, const ScriptSignature& signature);

}  // namespace collage::tensor_program
