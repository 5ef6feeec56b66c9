// Damaged files: one change each, of a kind that the number chooses. Some lie: their manifest says
// something else, and the seal and the manifest's CRC-32 fit it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "base/hash.h"

namespace collage::testing {

inline uint32_t crc32_of(std::string_view bytes) {
  uint32_t sum = ~0u;
  for (const char byte : bytes) {
    sum ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~sum;
}

// Writes the seal (artifact/zip.h) that the file would have if the manifest were its own.
inline void seal(std::string& file, const Manifest& manifest) {
  constexpr size_t kDigits = 64;
  Sha256 hash;
  size_t begin = 0;
  for (const ManifestEntry& entry : manifest.entries) {
    hash.update(file.data() + begin, entry.offset - begin);
    begin = entry.offset + entry.bytes;
  }
  hash.update(file.data() + begin, file.size() - kDigits - begin);
  file.replace(file.size() - kDigits, kDigits, hash.hex());
}

// The file with that text, of the same length, for its manifest.
inline std::string with_manifest(const std::string& file, const Manifest& manifest,
                                 const std::string& text) {
  const std::string old = manifest_text(manifest);
  const size_t end = manifest.entries.back().offset + manifest.entries.back().bytes;
  const size_t at = file.find(old, end);
  if (at == std::string::npos || text.size() != old.size()) std::abort();
  std::string copy = file;
  copy.replace(at, text.size(), text);
  const uint32_t old_sum = crc32_of(old), sum = crc32_of(text);
  for (size_t i = end; i + sizeof sum <= copy.size(); ++i)
    if (std::memcmp(copy.data() + i, &old_sum, sizeof sum) == 0)
      std::memcpy(copy.data() + i, &sum, sizeof sum);
  const Result<Manifest> read = parse_manifest(text, file.size() - 64);
  seal(copy, read.ok() ? *read : manifest);
  return copy;
}

// The manifest's text with another character somewhere in [at, at + count).
inline std::string other_character(std::string text, size_t at, size_t count, uint32_t number) {
  char& changed = text.at(at + number % count);
  changed = changed == '1' ? '2' : '1';
  return text;
}

// A copy of the file with a changed byte, a changed run of bytes, an end that is missing or too
// long, two entries in each other's place, or a manifest with another hash, place or name of an
// entry.
inline std::string damaged(const std::string& file, const Manifest& manifest, uint32_t number) {
  std::mt19937 random(number);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random()) % limit; };
  const auto any_entry = [&]() -> const ManifestEntry& {
    return manifest.entries[below(manifest.entries.size())];
  };
  std::string copy = file;
  switch (number % 8) {
    case 0:
    case 1:
      copy[below(copy.size())] ^= static_cast<char>(1 << below(8));
      break;
    case 2: {
      const size_t begin = below(copy.size()), length = 1 + below(64);
      for (size_t i = begin; i < copy.size() && i < begin + length; ++i)
        copy[i] = static_cast<char>(~copy[i]);
      break;
    }
    case 3:
      copy.resize(below(copy.size()));
      break;
    case 4:
      copy.append(1 + below(5000), static_cast<char>(below(256)));
      break;
    case 5: {
      const ManifestEntry &a = any_entry(), &b = any_entry();
      const size_t bytes = std::min(a.bytes, b.bytes);
      for (size_t i = 0; i < bytes; ++i) std::swap(copy[a.offset + i], copy[b.offset + i]);
      break;
    }
    case 6: {
      const ManifestEntry& entry = any_entry();
      const std::string text = manifest_text(manifest);
      const std::string& hash = below(2) == 0 ? entry.checksum : entry.sha256;
      return with_manifest(file, manifest,
                           other_character(text, text.find(hash), hash.size(), random()));
    }
    default: {
      const ManifestEntry& entry = any_entry();
      const std::string text = manifest_text(manifest), name = "\"name\": \"" + entry.name + '"';
      const std::string offset = "\"offset\": ", bytes = "\"bytes\": ";
      const size_t at = text.find(name);
      size_t begin = at + name.size() - 1 - entry.name.size(), count = entry.name.size();
      switch (below(3)) {
        case 0:
          begin = text.find(offset, at) + offset.size();
          count = std::to_string(entry.offset).size();
          break;
        case 1:
          begin = text.rfind(bytes, at) + bytes.size();
          count = std::to_string(entry.bytes).size();
          break;
        default:
          break;
      }
      return with_manifest(file, manifest, other_character(text, begin, count, random()));
    }
  }
  return copy;
}

}  // namespace collage::testing
