#include "ir/target.h"

#include <algorithm>
#include <sstream>

#include "base/printable.h"

namespace collage {

Result<Target> Target::parse(std::string_view text) {
  std::istringstream words{std::string(text)};
  Target target;
  if (!(words >> target.kind)) return usage_error("empty target");
  // Its text is a part of keys and messages.
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }))
    return usage_error("target '{}': only printable ASCII", printable(text));
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    if (word.size() < 2 || word[0] != '-' || equals == std::string::npos)
      return usage_error("target '{}': expected -option=value, found '{}'", text, word);
    std::string name = word.substr(1, equals - 1), value = word.substr(equals + 1);
    if (name == "device") {
      target.device.device = value;
    } else {
      target.options[name] = value;
    }
  }
  return target;
}

std::string Target::to_string() const {
  std::string text = kind;
  if (device.device != "cpu") text += " -device=" + device.device;
  for (const auto& [name, value] : options) text += " -" + name + "=" + value;
  return text;
}

}  // namespace collage
