// A model as a module: functions of operators, tensor programs and functions of libraries, of which
// @main is the model. It is read from text and printed as text at any stage, and its graph can be
// looked at and changed. Stages are passes (collage/passes.h); what they give is a Model again, and
// Program::compile takes a model of any stage.
//
//   collage::Model model = *collage::parse_model(R"(
//     def @main(%x: Tensor[(1, 8), float32]) { nn.relu(%x) })");
//   std::cout << *collage::model_text(model);
//
// docs/modules.md tells the stages, the text and what holds between them.
#pragma once

#include <collage/collage.h>
#include <collage/expression.h>

#include <functional>
#include <optional>

namespace collage {

// A model of a module's text, as it is: nothing is simplified. Inputs are named as the parameters
// of @main. `weights`: the constants that the text gives by type alone, as model_weights gives
// them. kBadModel, with line and column: malformed text; a constant that is missing or has another
// type; no @main, or one that takes tuples.
Result<Model> parse_model(const std::string& text, const std::vector<Tensor>& weights = {});

struct ModelTextOptions {
  // Values of constants in a section behind the functions. Without them those of more than 64
  // elements are there by type alone.
  bool values = true;
  bool types = false;  // of every intermediate value, in comments
};
// Relay text, which parse_model reads. Single numbers are literals.
Result<std::string> model_text(const Model& model, const ModelTextOptions& options = {});
// The constants meta[relay.Constant][0], [1] … of model_text, for parse_model. They share storage
// with the model's.
Result<std::vector<Tensor>> model_weights(const Model& model);
// Writes the text to a file whose name ends in .relay, and large constants to one beside it
// (.relay.bin). Model::load reads it.
Status save_model(const Model& model, const std::filesystem::path& path);

struct ModuleFunction {
  enum class Kind { kGraph, kProgram, kExternal };
  std::string name;  // without '@'
  Kind kind;
  std::string type;  // "fn (Tensor[(1, 8), float32]) -> float32"
};
// What model_text defines, by kind and name. Programs that the model calls are among them whether
// they were linked into their calls already or not.
Result<std::vector<ModuleFunction>> module_functions(const Model& model);

// Whether the module is legal: everything bound, typed as inferred, and called as what it is.
// kBadModel: the function and the rule that it breaks.
Status verify_model(const Model& model);

// What one run of @main takes at the least: arithmetic operations, and bytes of its parameters,
// constants and results. kUsage: there is no @main.
struct ModelWork {
  double operations = 0;
  double bytes = 0;
};
Result<ModelWork> model_work(const Model& model);

// A function of the graph, or a reference to it by its name. kUsage: there is none of that name.
Result<Expression> graph_function(const Model& model, const std::string& name = "main");
Result<Expression> global_function(const Model& model, const std::string& name);
// The model with that function in place of the one of that name, or besides the others. Verified
// when it is compiled or a pipeline ends the pass that made it. kBadModel: it is no function; a
// @main that takes tuples.
Result<Model> with_function(const Model& model, const std::string& name,
                            const Expression& function);

// The model with calls replaced. `replace` sees each call of an operator or function, once, with
// the arguments that it has by then, those before it first, and gives what stands for it, of the
// same type, or nothing to keep it. Kernels that somebody decided on (Primitive functions) are not
// entered. kBadModel: a replacement of another type; else the error that `replace` gives.
using ReplaceCall = std::function<Result<std::optional<Expression>>(const Expression& call)>;
Result<Model> rewrite_calls(const Model& model, const ReplaceCall& replace);

}  // namespace collage
