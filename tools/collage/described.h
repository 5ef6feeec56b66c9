// The command as it describes itself: its sub-commands, their flags with what these mean, and
// examples. Help, the manual page and completions for shells are all made from it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "options.h"

namespace collage::tool {

struct Example {
  const char *verb, *line, *meaning;
};
std::span<const Example> examples();

bool is_visible(const CLI::App& command);
// All but hidden ones.
std::vector<const CLI::Option*> flags_of(const CLI::App& command);
inline bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// A manual page (roff).
std::string manual(const CLI::App& app, const std::vector<Command>& commands);

// Scripts that a shell completes words by.
std::string bash_completion(const CLI::App& app, const std::vector<Command>& commands);
std::string zsh_completion(const CLI::App& app, const std::vector<Command>& commands);
std::string fish_completion(const CLI::App& app, const std::vector<Command>& commands);

}  // namespace collage::tool
