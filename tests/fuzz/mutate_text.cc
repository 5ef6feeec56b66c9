#include "fuzz/mutate_text.h"

#include <algorithm>
#include <cctype>

namespace collage::fuzz {
namespace {

enum Kind { kName, kNumber, kString, kBlank, kMark };

bool is(char c, int (*of)(int)) { return of(static_cast<unsigned char>(c)) != 0; }

Kind kind_of(std::string_view word) {
  if (is(word[0], std::isalpha) || word[0] == '_') return kName;
  if (is(word[0], std::isdigit)) return kNumber;
  if (is(word[0], std::isspace)) return kBlank;
  return word[0] == '"' && word.size() > 1 ? kString : kMark;
}

// The kind of a word and the marks around it: what can stand there in the grammar.
std::string place_of(const std::vector<std::string>& words, size_t at) {
  const auto neighbour = [&](std::ptrdiff_t step) {
    auto i = static_cast<std::ptrdiff_t>(at) + step;
    while (i >= 0 && i < std::ssize(words) && kind_of(words[static_cast<size_t>(i)]) == kBlank)
      i += step;
    if (i < 0 || i >= std::ssize(words)) return ' ';
    const std::string& word = words[static_cast<size_t>(i)];
    return kind_of(word) == kMark ? word[0] : 'a';
  };
  return {static_cast<char>('0' + kind_of(words[at])), neighbour(-1), neighbour(1)};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size();) {
    const auto run = [&](auto belongs) {
      size_t end = i + 1;
      while (end < text.size() && belongs(text[end])) ++end;
      return end;
    };
    size_t end = i + 1;
    if (is(text[i], std::isalpha) || text[i] == '_') {
      end = run([](char c) { return is(c, std::isalnum) || c == '_' || c == '.'; });
    } else if (is(text[i], std::isdigit)) {
      end = run([](char c) { return is(c, std::isalnum) || c == '.'; });
    } else if (is(text[i], std::isspace)) {
      end = run([](char c) { return is(c, std::isspace); });
    } else if (text[i] == '"') {
      end = run([](char c) { return c != '"'; });
      end = std::min(end + 1, text.size());
    }
    words.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

std::string unusual_number(Random& random) {
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "7",
                                                    "16",
                                                    "63",
                                                    "64",
                                                    "65",
                                                    "127",
                                                    "128",
                                                    "255",
                                                    "256",
                                                    "1000",
                                                    "32767",
                                                    "32768",
                                                    "65535",
                                                    "65536",
                                                    "1048576",
                                                    "16777216",
                                                    "2147483647",
                                                    "2147483648",
                                                    "4294967295",
                                                    "4294967296",
                                                    "1099511627776",
                                                    "4611686018427387904",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "18446744073709551615",
                                                    "18446744073709551616",
                                                    "1e308",
                                                    "1e309",
                                                    "1e-320",
                                                    "0.5",
                                                    "1.5",
                                                    "3.4e38",
                                                    "3.5e38"};
  return (random.one_in(4) ? "-" : "") + random.pick(kNumbers);
}

std::string with_other_bytes(std::string bytes, Random& random) {
  for (size_t n = 1 + random.below(4); n > 0 && !bytes.empty(); --n) {
    const size_t at = random.below(bytes.size());
    switch (random.below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random.next());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 2:
        bytes.erase(at, 1 + random.below(8));
        break;
      case 3:
        bytes.insert(at, bytes.substr(random.below(bytes.size()), 1 + random.below(16)));
        break;
      default:
        if (random.one_in(4)) bytes.resize(at);
    }
  }
  return bytes;
}

TextMutator::TextMutator(const std::vector<std::string>& seeds) : seeds_(seeds) {
  for (const std::string& seed : seeds) {
    const std::vector<std::string> words = words_of(seed);
    for (size_t i = 0; i < words.size(); ++i) by_place_[place_of(words, i)].push_back(words[i]);
  }
  // Equal words once: rare ones are as likely as frequent ones.
  for (auto& [place, words] : by_place_) {
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
  }
}

std::string TextMutator::changed(std::string text, Random& random) const {
  std::vector<std::string> words = words_of(text);
  for (size_t n = 1 + random.below(2) * random.below(3); n > 0 && !words.empty(); --n) {
    const size_t at = random.below(words.size());
    const auto place = words.begin() + static_cast<std::ptrdiff_t>(at);
    const Kind kind = kind_of(words[at]);
    switch (random.below(48)) {
      case 0:
        words.erase(place);
        break;
      case 1:
        words.insert(place, words[random.below(words.size())]);
        break;
      case 2:
        std::swap(words[at], words[random.below(words.size())]);
        break;
      case 3: {  // a part of it many times
        const size_t length = std::min(words.size() - at, 1 + random.below(12));
        const std::vector<std::string> part(place, place + static_cast<std::ptrdiff_t>(length));
        for (size_t times = random.one_in(8) ? 400 : 1 + random.below(4); times > 0; --times)
          words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
        break;
      }
      case 4:
        return with_other_bytes(joined(words), random);
        break;
      default:
        if (kind == kBlank || (kind == kMark && !random.one_in(4))) {
          ++n;  // nothing to learn from these
        } else if (kind == kNumber && random.one_in(2)) {
          words[at] = unusual_number(random);
        } else if (const auto others = by_place_.find(place_of(words, at));
                   others != by_place_.end()) {
          words[at] = random.pick(others->second);
        }
    }
  }
  return joined(words);
}

std::string TextMutator::make(Random& random) const {
  std::string text = random.pick(seeds_);
  if (random.one_in(48)) {
    const std::string& other = random.pick(seeds_);
    text = text.substr(0, text.find('\n', random.below(text.size()))) +
           other.substr(std::min(other.find('\n', random.below(other.size())), other.size()));
  }
  return changed(std::move(text), random);
}

}  // namespace collage::fuzz
