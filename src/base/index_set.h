// A set of small non-negative integers as a bit vector: the nodes of a dataflow graph, by their
// post-dfs index. Sets of different capacity compare by content. Binary operations accept any
// capacities.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace collage {

class IndexSet {
 public:
  IndexSet() = default;
  explicit IndexSet(size_t capacity) : words_((capacity + 63) / 64) {}
  IndexSet(size_t capacity, std::initializer_list<size_t> elements) : IndexSet(capacity) {
    for (size_t e : elements) insert(e);
  }

  void insert(size_t index) {
    if (index / 64 >= words_.size()) words_.resize(index / 64 + 1);
    words_[index / 64] |= uint64_t{1} << (index % 64);
  }
  void erase(size_t index) {
    if (index / 64 < words_.size()) words_[index / 64] &= ~(uint64_t{1} << (index % 64));
  }
  bool contains(size_t index) const {
    return index / 64 < words_.size() && (words_[index / 64] >> (index % 64) & 1) != 0;
  }
  bool empty() const {
    for (uint64_t w : words_)
      if (w) return false;
    return true;
  }
  size_t size() const {
    size_t n = 0;
    for (uint64_t w : words_) n += static_cast<size_t>(std::popcount(w));
    return n;
  }
  static constexpr size_t kNone = ~size_t{0};
  size_t first() const { return next(0); }
  // The smallest element >= from, or kNone.
  size_t next(size_t from) const {
    for (size_t w = from / 64; w < words_.size(); ++w) {
      uint64_t bits = words_[w];
      if (w == from / 64) bits &= ~uint64_t{0} << (from % 64);
      if (bits) return w * 64 + static_cast<size_t>(std::countr_zero(bits));
    }
    return kNone;
  }
  size_t last() const {
    for (size_t w = words_.size(); w-- > 0;)
      if (words_[w]) return w * 64 + 63 - static_cast<size_t>(std::countl_zero(words_[w]));
    return kNone;
  }
  // The smallest index not in the set.
  size_t first_missing() const {
    for (size_t w = 0; w < words_.size(); ++w)
      if (~words_[w]) return w * 64 + static_cast<size_t>(std::countr_one(words_[w]));
    return words_.size() * 64;
  }
  bool intersects(const IndexSet& other) const {
    for (size_t w = 0; w < words_.size() && w < other.words_.size(); ++w)
      if (words_[w] & other.words_[w]) return true;
    return false;
  }
  bool is_subset_of(const IndexSet& other) const {
    for (size_t w = 0; w < words_.size(); ++w)
      if (words_[w] & ~(w < other.words_.size() ? other.words_[w] : 0)) return false;
    return true;
  }
  IndexSet& operator|=(const IndexSet& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (size_t w = 0; w < other.words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  IndexSet& operator&=(const IndexSet& other) {
    for (size_t w = 0; w < words_.size(); ++w)
      words_[w] &= w < other.words_.size() ? other.words_[w] : 0;
    return *this;
  }
  IndexSet& operator-=(const IndexSet& other) {
    for (size_t w = 0; w < words_.size() && w < other.words_.size(); ++w)
      words_[w] &= ~other.words_[w];
    return *this;
  }
  friend IndexSet operator|(IndexSet a, const IndexSet& b) { return a |= b; }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) { return a &= b; }
  friend IndexSet operator-(IndexSet a, const IndexSet& b) { return a -= b; }
  friend bool operator==(const IndexSet& a, const IndexSet& b) {
    size_t n = a.words_.size() > b.words_.size() ? a.words_.size() : b.words_.size();
    for (size_t w = 0; w < n; ++w) {
      uint64_t x = w < a.words_.size() ? a.words_[w] : 0, y = w < b.words_.size() ? b.words_[w] : 0;
      if (x != y) return false;
    }
    return true;
  }
  friend bool operator<(const IndexSet& a,
                        const IndexSet& b) {  // lexicographic by word from the lowest
    size_t n = a.words_.size() > b.words_.size() ? a.words_.size() : b.words_.size();
    for (size_t w = 0; w < n; ++w) {
      uint64_t x = w < a.words_.size() ? a.words_[w] : 0, y = w < b.words_.size() ? b.words_[w] : 0;
      if (x != y) return x < y;
    }
    return false;
  }
  size_t hash() const {
    size_t h = 0xcbf29ce484222325u, n = words_.size();
    while (n > 0 && words_[n - 1] == 0) --n;
    for (size_t w = 0; w < n; ++w) h = (h ^ words_[w]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
  }
  // Calls f(index) for every element in ascending order.
  template <typename F>
  void for_each(F&& f) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t bits = words_[w]; bits; bits &= bits - 1)
        f(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
  }
  std::vector<size_t> elements() const {
    std::vector<size_t> result;
    for_each([&](size_t i) { result.push_back(i); });
    return result;
  }
  std::string to_string() const {  // "{1,4,7}"
    std::string text = "{";
    for_each([&](size_t i) { text += (text.size() > 1 ? "," : "") + std::to_string(i); });
    return text + "}";
  }

 private:
  std::vector<uint64_t> words_;
};

struct IndexSetHash {
  size_t operator()(const IndexSet& set) const { return set.hash(); }
};

}  // namespace collage
