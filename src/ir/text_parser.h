// Parses Relay text (see ir/text_printer.h for the form). Types are inferred again and every
// annotation is checked against them. Errors carry line and column and say what was expected. The
// text is not trusted: nesting is limited, sizes are checked before memory is taken.
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

namespace collage {

class TextReader;

struct ParseOptions {
  // Where the side file that the text names is.
  std::filesystem::path folder;
  // What it would hold, in place of it; null: it is read.
  const std::vector<Tensor>* side_tensors = nullptr;
  // Supplies the constants that the text gives only by type; `index` is the one in meta[…][index].
  std::function<Result<Tensor>(const TensorType& type, size_t index)> constant;
  // Reads what follows `program @name` or `extern @name`, which ir does not know, from the current
  // token on, and passes it; `kind` is which of the two words stood there.
  std::function<Result<std::shared_ptr<const AbstractFunction>>(const std::string& kind,
                                                                TextReader& reader)>
      abstract_function;
  // Calls come from where they stand: their origin is "line 3, column 8".
  bool positions = false;
};

// A module; a bare `fn (…) {…}` is taken for @main.
Result<Module> parse_module(std::string_view text, const ParseOptions& options = {});
// The function @main of such text.
Result<Function> parse_function(std::string_view text, const ParseOptions& options = {});
// The module in a file written by `save_module`; the side file is looked for next to it.
Result<Module> load_module(const std::filesystem::path& path, ParseOptions options = {});

}  // namespace collage
