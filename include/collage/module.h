// A model as a module: functions of operators, tensor programs and functions of libraries, of which
// @main is the model. These functions read it from text, print it at any stage, and read and change
// its graph. Stages are passes (collage/passes.h) from Model to Model; Program::compile takes a
// model of any stage.
//
//   collage::Model model = *collage::parse_model(R"(
//     def @main(%x: Tensor[(1, 8), float32]) { nn.relu(%x) })");
//   std::cout << *collage::model_text(model);
//
// docs/modules.md describes the stages, the text and the rules of a module.
#pragma once

#include <collage/collage.h>
#include <collage/expression.h>

#include <functional>
#include <map>
#include <optional>

namespace collage {

// Parses a module, Relay text or script, without simplifying it. Inputs are named as the parameters
// of @main. `weights`: the constants that the text gives by type alone, as model_weights returns
// them; `dims`: values of its symbols. kUnsupported: a symbol has no value. kBadModel, with line
// and column: the text is malformed; a constant is missing or has another type; there is no @main,
// or it takes tuples.
Result<Model> parse_model(const std::string& text, const std::vector<Tensor>& weights = {},
                          const std::map<std::string, int64_t>& dims = {});

struct ModelTextOptions {
  // Prints values of constants in a section behind the functions. Without it, constants of more
  // than 64 elements are printed by type alone.
  bool values = true;
  bool types = false;  // of every intermediate value, in comments
};
// Returns Relay text, which parse_model reads. Single numbers are literals.
Result<std::string> model_text(const Model& model, const ModelTextOptions& options = {});
// Returns script, TVM's Python-like text of functions and loops, which parse_model reads; there
// constants by type alone are given in the order of the text. kUnsupported: script cannot say it.
Result<std::string> model_script(const Model& model, const ModelTextOptions& options = {});
// Returns the constants meta[relay.Constant][0], [1] … of model_text, for parse_model. They share
// the model's storage.
Result<std::vector<Tensor>> model_weights(const Model& model);
// Writes the text to a file whose name ends in .relay, and large constants to a file beside it
// (.relay.bin). Model::load reads them.
Status save_model(const Model& model, const std::filesystem::path& path);

struct ModuleFunction {
  enum class Kind { kGraph, kProgram, kExternal };
  std::string name;  // without '@'
  Kind kind;
  std::string type;  // "fn (Tensor[(1, 8), float32]) -> float32"
};
// Lists what model_text defines, by kind and name, including programs that are already linked into
// their calls.
Result<std::vector<ModuleFunction>> module_functions(const Model& model);

// A program that is attached to the module (passes::codegen), by the symbol that functions call it
// by.
struct ExternalModule {
  std::string symbol;
  std::string target, variant;  // that it was compiled for, for people
  Tensor code;                  // uint8: an artifact (docs/artifact.md)
};
Result<std::vector<ExternalModule>> external_modules(const Model& model);

// Checks that the module is legal: everything is bound, typed as inferred, and called as what it
// is. kBadModel names the function and the rule that it breaks.
Status verify_model(const Model& model);

// The least work of one run of @main: arithmetic operations, and bytes of its parameters, constants
// and results. kUsage: there is no @main.
struct ModelWork {
  double operations = 0;
  double bytes = 0;
};
Result<ModelWork> model_work(const Model& model);

// Returns a function of the graph. kUsage: there is none of that name.
Result<Expression> graph_function(const Model& model, const std::string& name = "main");
Result<Expression> global_function(const Model& model, const std::string& name);
// Returns the model with that function in place of the one of that name, or added. It is verified
// when it is compiled, or at the end of the pass. kBadModel: `function` is no function, or is a
// @main that takes tuples.
Result<Model> with_function(const Model& model, const std::string& name,
                            const Expression& function);

// Returns the model with calls replaced. `replace` gets each call of an operator or function once,
// in order, with its arguments already replaced, and returns an expression of the same type, or
// nothing to keep the call. Primitive functions are not entered. kBadModel: a replacement has
// another type; else the error of `replace`.
using ReplaceCall = std::function<Result<std::optional<Expression>>(const Expression& call)>;
Result<Model> rewrite_calls(const Model& model, const ReplaceCall& replace);

// What a pattern (docs/patterns.md) matched, and what each $name in it is; names of alternatives
// that were not taken are absent.
struct PatternMatch {
  Expression root;
  std::map<std::string, Expression> values;
};
// Returns the model with matches of a pattern replaced. `replace` gets every match in order, whose
// inputs and parts are already replaced, and returns an expression of the root's type, or nothing
// to keep the match. Values inside of it that others use stay for them. Primitive functions are not
// entered. kUsage: the pattern is malformed; else as rewrite_calls.
using ReplaceMatch = std::function<Result<std::optional<Expression>>(const PatternMatch& match)>;
Result<Model> rewrite_matches(const Model& model, const std::string& pattern,
                              const ReplaceMatch& replace);

}  // namespace collage
