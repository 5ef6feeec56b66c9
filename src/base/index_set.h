// A set of small non-negative integers as a bit vector: the nodes of a dataflow graph, by their
// index in post-order (post-dfs index: if i < j, node j cannot influence node i). Only the words
// between the smallest and the largest element are kept, so that many small sets over a large graph
// stay small. Sets compare by content.
#pragma once

#include <algorithm>
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
  IndexSet(std::initializer_list<size_t> elements) {
    for (size_t e : elements) insert(e);
  }

  void insert(size_t index) {
    cover(index / 64, index / 64 + 1);
    words_[index / 64 - offset_] |= uint64_t{1} << (index % 64);
  }
  void erase(size_t index) {
    if (holds(index / 64)) words_[index / 64 - offset_] &= ~(uint64_t{1} << (index % 64));
  }
  bool contains(size_t index) const { return (word(index / 64) >> (index % 64) & 1) != 0; }
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
  // Returns the smallest element >= from, or kNone.
  size_t next(size_t from) const {
    for (size_t w = std::max(from / 64, offset_); w < end(); ++w) {
      uint64_t bits = word(w);
      if (w == from / 64) bits &= ~uint64_t{0} << (from % 64);
      if (bits) return w * 64 + static_cast<size_t>(std::countr_zero(bits));
    }
    return kNone;
  }
  size_t last() const {
    for (size_t w = end(); w-- > offset_;)
      if (word(w)) return w * 64 + 63 - static_cast<size_t>(std::countl_zero(word(w)));
    return kNone;
  }
  bool intersects(const IndexSet& other) const {
    for (size_t w = std::max(offset_, other.offset_); w < std::min(end(), other.end()); ++w)
      if (word(w) & other.word(w)) return true;
    return false;
  }
  bool is_subset_of(const IndexSet& other) const {
    for (size_t w = offset_; w < end(); ++w)
      if (word(w) & ~other.word(w)) return false;
    return true;
  }
  IndexSet& operator|=(const IndexSet& other) {
    if (other.words_.empty()) return *this;
    cover(other.offset_, other.end());
    for (size_t w = other.offset_; w < other.end(); ++w) words_[w - offset_] |= other.word(w);
    return *this;
  }
  IndexSet& operator&=(const IndexSet& other) {
    for (size_t w = offset_; w < end(); ++w) words_[w - offset_] &= other.word(w);
    return *this;
  }
  IndexSet& operator-=(const IndexSet& other) {
    for (size_t w = std::max(offset_, other.offset_); w < std::min(end(), other.end()); ++w)
      words_[w - offset_] &= ~other.word(w);
    return *this;
  }
  friend IndexSet operator|(IndexSet a, const IndexSet& b) { return a |= b; }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) { return a &= b; }
  friend IndexSet operator-(IndexSet a, const IndexSet& b) { return a -= b; }
  friend bool operator==(const IndexSet& a, const IndexSet& b) {
    for (size_t w = std::min(a.offset_, b.offset_); w < std::max(a.end(), b.end()); ++w)
      if (a.word(w) != b.word(w)) return false;
    return true;
  }
  friend bool operator<(const IndexSet& a,
                        const IndexSet& b) {  // lexicographic by word from the lowest
    for (size_t w = std::min(a.offset_, b.offset_); w < std::max(a.end(), b.end()); ++w)
      if (a.word(w) != b.word(w)) return a.word(w) < b.word(w);
    return false;
  }
  size_t hash() const {
    size_t h = 0xcbf29ce484222325u;
    for (size_t w = offset_; w < end(); ++w)
      if (word(w)) h = (h ^ word(w) ^ (w << 48)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
  }
  // Calls f(index) for every element in ascending order.
  template <typename F>
  void for_each(F&& f) const {
    for (size_t w = offset_; w < end(); ++w)
      for (uint64_t bits = word(w); bits; bits &= bits - 1)
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
  size_t end() const { return offset_ + words_.size(); }
  bool holds(size_t w) const { return w >= offset_ && w < end(); }
  uint64_t word(size_t w) const { return holds(w) ? words_[w - offset_] : 0; }
  // Reserves the words from..to-1.
  void cover(size_t from, size_t to) {
    if (words_.empty()) {
      offset_ = from;
    } else if (from < offset_) {
      words_.insert(words_.begin(), offset_ - from, 0);
      offset_ = from;
    }
    if (to > end()) words_.resize(to - offset_);
  }

  size_t offset_ = 0;  // of the first word kept
  std::vector<uint64_t> words_;
};

struct IndexSetHash {
  size_t operator()(const IndexSet& set) const { return set.hash(); }
};

}  // namespace collage
