// Modules as script, TVM's Python-like text of graph functions and loops (docs/modules.md). It is
// text to be read and printed; no Python runs. script_program.h has the form of programs,
// script_graph.h that of graph functions, script_calls.h that of functions that fill buffers by
// calls. All stand in a class:
//
//   n, m = 16, 24                 names of numbers that shapes are made of
//
//   @ir_module
//   class Module:
//       I.module_attrs({"external_mods": {"sum": ("onednn", "sum", R.const(shape=(20786,), …))}})
//       product = R.extern("cblas_sgemm", (R.Tensor((4, 8)), R.Tensor((8, 2))))
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/module.h"
#include "ir/text_parser.h"

namespace collage::tensor_program {

/// Whether the first line that begins with '@' is a decorator …ir_module.
bool is_script(std::string_view text);

/// Parses script, or Relay text with programs and external functions, whichever it is.
Result<Module> parse_module_text(std::string_view text, ParseOptions options = {});
/// Reads a file of such text.
Result<Module> load_module_text(const std::filesystem::path& path, ParseOptions options = {});
/// Whether a file's name ends as such files' names do: .relay, or .script or .py for script.
bool is_module_text(const std::filesystem::path& path);

Result<Module> parse_script(std::string_view text, const ParseOptions& options = {});

struct ScriptOptions {
  int64_t most_printed = INT64_MAX;  ///< constants of more elements are printed by type alone
  bool show_types = false;           ///< of every binding
};
/// Returns text that parse_script reads to a structurally equal module. kUnsupported: script cannot
/// say it.
Result<std::string> to_script(const Module& module, const ScriptOptions& options = {});

}  // namespace collage::tensor_program
