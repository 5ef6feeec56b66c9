// Modules over symbols: one text for every size, Relay's or script.
//
//   def @main(%x: Tensor[(n, 64), float32], %y: Tensor[(n, m + 1), float32]) {
//     reshape(concatenate((%x, %y), axis=1), newshape=[n * (m + 65)])
//   }
//
// A dimension, an integer of an attribute and an extent of a program may be a term over symbols
// (tensor_program/extent.h). Symbols are those in the shapes of @main's parameters, each of which
// stands alone in one of these; and those that a run counts: `match_size(%all, %count, size=k,
// symbol="k")` makes k what %count holds, wherever k stands (parts.h). Such a text is a family of
// modules of numbers: it is read once for each values of its symbols, so type rules, passes and
// kernels know numbers alone. When it is made, several instances are typed; what is wrong with the
// text is said then.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/script/fitted_extent.h"
#include "ir/module.h"
#include "ir/text_parser.h"
#include "tensor_program/extent.h"

namespace collage::tensor_program {

/// `shape`: terms. Of a result a dimension is undefined where no term is known.
struct SymbolicTensor {
  std::string name;
  DType dtype;
  std::vector<Term> shape;
  std::string to_string() const;  ///< "Tensor[(n, 64), float32]", "?" for an undefined dimension
  std::vector<std::string> dims() const;  ///< "n", "64", "?"
};

class SymbolicModule {
 public:
  /// Reads text whose entry is `function`. Text whose headers cannot be read, or name no symbols,
  /// gives a module without symbols: parse_module_text says what it is, or is wrong with it.
  static Result<SymbolicModule> parse(std::string text, ParseOptions options = {},
                                      std::string function = "main");
  /// Likewise, of text whose large constants are these, as kSideFile.
  static Result<SymbolicModule> parse(std::string text, std::vector<Tensor> constants);
  static constexpr std::string_view kSideFile = "constants";
  static Result<SymbolicModule> load(const std::filesystem::path& path, ParseOptions options = {});

  /// In the order of the parameters, then those that a run counts.
  const std::vector<std::string>& symbols() const { return symbols_; }
  const std::vector<std::string>& counted() const { return counted_; }
  const std::vector<SymbolicTensor>& params() const { return params_; }
  /// The leaves of the entry's result, as its header states them, else inferred from instances;
  /// without names.
  const std::vector<SymbolicTensor>& results() const { return results_; }
  const std::string& text() const { return text_; }
  /// Of text that was parsed with them; empty otherwise.
  std::span<const Tensor> constants() const {
    return constants_ == nullptr ? std::span<const Tensor>() : std::span(*constants_);
  }
  /// "fn (%x: Tensor[(n, 64), float32]) -> Tensor[(n, 4), float32]"
  std::string signature() const;

  /// Returns the symbols' values by the parameters' shapes, or which two contradict each other;
  /// those that a run counts are not among them.
  Result<Symbols> bind(std::span<const Shape> shapes) const;
  /// Likewise by some of the shapes, by name, and some of the values. kUsage: a value is of no
  /// symbol. kUnsupported: a symbol has none.
  Result<Symbols> bind(const std::map<std::string, Shape>& shapes, Symbols values) const;
  /// Returns the module of numbers.
  Result<Module> instantiate(const Symbols& values) const;
  /// Likewise of another text over these symbols, with this one's constants.
  Result<Module> read(const std::string& text, const Symbols& values) const;
  /// Writes the text and, of text that was parsed with its constants, these to PATH.bin. kUsage:
  /// the constants are in a file beside the one that it was read from.
  Status save(const std::filesystem::path& path) const;

 private:
  Status read_headers();
  Status infer_results();
  Status infer_results(const ExtentPoints& points);

  std::string text_, function_;
  std::shared_ptr<const std::vector<Tensor>> constants_;  // that `options_` point to
  ParseOptions options_;
  std::vector<std::string> symbols_, counted_;
  std::vector<SymbolicTensor> params_, results_;
  std::vector<Term> stated_;  // the extents of the result that the header states
};

}  // namespace collage::tensor_program
