#include "base/regex.h"

#include <re2/re2.h>

namespace collage {

Result<Regex> Regex::parse(std::string_view expression) {
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled =
      std::make_shared<const RE2>(re2::StringPiece(expression.data(), expression.size()), options);
  if (!compiled->ok())
    return usage_error("'{}' is no regular expression: {}", expression, compiled->error());
  return Regex(std::move(compiled));
}

bool Regex::found_in(std::string_view text) const {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace collage
