// Regular expressions that users give, matched in time linear in the text (RE2): no expression can
// make the command hang or run out of stack. The syntax is that of Perl without look-around and
// back-references.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace collage {

class Regex {
 public:
  // kUsage: `expression` is malformed, with the place and the reason.
  static Result<Regex> parse(std::string_view expression);

  // Returns whether some part of `text` matches.
  bool found_in(std::string_view text) const;

 private:
  explicit Regex(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace collage
