// Models at any stage: makes models of modules, and checks what a module must be before it is
// partitioned.
#pragma once

#include <map>
#include <string>

#include "compiler/compile.h"
#include "ir/text_parser.h"

namespace collage {

// Makes the module a later stage of `like`: from the same file, inputs and outputs named alike
// where they are the same. Does not verify it. kBadModel: there is no @main, or it takes values
// that are no tensors.
Result<Model> staged_model(const Model& like, Module module);

// Returns the module that the text is: of text over symbols (frontend/script/symbolic_module.h) the
// instance for these shapes of inputs and values of symbols. kUnsupported: a symbol has no value.
Result<Module> instance_of_text(const std::string& text, const ParseOptions& options,
                                const std::map<std::string, Shape>& shapes,
                                const std::map<std::string, int64_t>& dims);

// Does so with a module that computes the same: the model keeps its half-precision form, which it
// is still held against.
Result<Model> equivalent_model(const Model& like, Module module);

// Runs the standard passes; the model keeps its half-precision form.
Result<Model> simplified(const Model& model);

// Verifies a model that a user made, once it is used.
Status check_verified(const Model& model);

// Returns the verified model with calls of functions, programs and defined operators replaced by
// their contents: the first passes of the simplification, which partitioning needs. The same model
// if there is nothing to do.
Result<Model> linked(const Model& model);

// Returns the model as strict accuracy computes it: with attention taken apart into products and a
// softmax, of which there are kernels that keep NaN (kernels of the whole do not read what a causal
// mask hides, or lose NaN in their maximum). The same model if it has none.
Result<Model> in_strict_form(const Model& model);

}  // namespace collage
