// Changes to text, word by word, so that most of what comes out still parses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/random.h"

namespace collage::fuzz {

// Names, numbers, strings in quotes, blanks, and other characters one by one.
std::vector<std::string> words_of(std::string_view text);

// The words of all seeds by their kind, and the seeds.
class TextMutator {
 public:
  explicit TextMutator(const std::vector<std::string>& seeds);
  // A seed with a few changes: a word becomes another of its kind, or goes, or comes twice; two
  // seeds are joined; seldom, a byte is another one.
  std::string make(Random& random) const;
  std::string changed(std::string text, Random& random) const;

 private:
  std::vector<std::string> seeds_;
  std::vector<std::vector<std::string>> by_kind_;
};

// A number that somebody forgot to think of, as text.
std::string unusual_number(Random& random);
// A few bytes are other ones, go or come.
std::string with_other_bytes(std::string bytes, Random& random);

}  // namespace collage::fuzz
