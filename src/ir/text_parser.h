// Parses Relay text (see ir/text_printer.h for the form). Types are inferred again and every
// annotation is checked against them. Errors state line, column and what was expected. The text is
// untrusted: nesting is limited, sizes are checked before memory is taken.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/module.h"
#include "ir/text_symbols.h"

namespace collage {

class TextReader;

struct ParseOptions {
  // The folder of the side file that the text names.
  std::filesystem::path folder;
  // The tensors of the side file, if it is not to be read; else null.
  const std::vector<Tensor>* side_tensors = nullptr;
  // Supplies the constants that the text gives only by type; `index` is the one in meta[…][index].
  std::function<Result<Tensor>(const TensorType& type, size_t index)> constant;
  // Parses what follows `program @name` or `extern @name`, which this room does not know, from the
  // current token on; `kind` is the word before the name. Null: it is left out.
  std::function<Result<std::shared_ptr<const AbstractFunction>>(const std::string& kind,
                                                                TextReader& reader)>
      abstract_function;
  // The text is over symbols; null: extents are integers.
  const TextSymbols* symbols = nullptr;
  // Gives each call its position as origin: "line 3, column 8".
  bool positions = false;
};

// Parses a module; a bare `fn (…) {…}` becomes @main.
Result<Module> parse_module(std::string_view text, const ParseOptions& options = {});
// Parses the function @main of such text.
Result<Function> parse_function(std::string_view text, const ParseOptions& options = {});
// Reads a module that `save_module` wrote; the side file must lie next to it.
Result<Module> load_module(const std::filesystem::path& path, ParseOptions options = {});

}  // namespace collage
