// Changes to text, word by word, so that most of what comes out still parses.
#pragma once

#include <map>
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
  // A seed with a few changes: mostly a word becomes another that stands between the same marks
  // somewhere; seldom words go, come twice or many times, seeds are joined, bytes are other ones.
  std::string make(Random& random) const;
  std::string changed(std::string text, Random& random) const;

 private:
  std::vector<std::string> seeds_;
  std::map<std::string, std::vector<std::string>> by_place_;
};

// A number that somebody forgot to think of, as text.
std::string unusual_number(Random& random);
// A few bytes are other ones, go or come.
std::string with_other_bytes(std::string bytes, Random& random);

}  // namespace collage::fuzz
