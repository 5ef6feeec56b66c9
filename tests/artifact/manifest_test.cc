// What a manifest may say whose seal is right, and checksums.
#include "artifact/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "artifact/checksum.h"
#include "base/json_fields.h"

namespace collage {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Ne;

constexpr size_t kFile = 10 * kPageBytes;

json manifest() {
  json entries = json::array();
  for (int i = 0; i < 3; ++i)
    entries.push_back({{"name", "entry" + std::to_string(i)},
                       {"offset", (2 * i + 1) * static_cast<int>(kPageBytes)},
                       {"bytes", 100},
                       {"checksum", "c"},
                       {"sha256", "s"}});
  return {{"format", 4},
          {"version", "1"},
          {"model", "m.onnx"},
          {"threads", 2},
          {"max_error", 0},
          {"features", json::array({"avx2"})},
          {"loaders", {{"native", "1"}}},
          {"entries", std::move(entries)}};
}

std::string refusal(const json& value) {
  const Result<Manifest> read = parse_manifest(json_text(value), kFile);
  if (read.ok()) return "ok";
  EXPECT_NE(read.status().code(), ErrorCode::kInternal);
  return read.status().to_string();
}

std::string entry_refusal(size_t entry, const char* field, const json& value) {
  json changed = manifest();
  changed["entries"][entry][field] = value;
  return refusal(changed);
}

TEST(Manifest, IsReadAsItWasWritten) {
  const Manifest read = parse_manifest(json_text(manifest()), kFile).value();
  const Manifest again = parse_manifest(manifest_text(read), kFile).value();
  EXPECT_EQ(manifest_text(read), manifest_text(again));
  ASSERT_EQ(again.entries.size(), 3u);
  EXPECT_EQ(again.entries[1].offset, 3 * kPageBytes);
  EXPECT_EQ(again.find("entry2")->checksum, "c");
  EXPECT_EQ(again.find("entry3"), nullptr);
}

TEST(Manifest, RefusesEntriesThatCannotBe) {
  for (const json& offset : {json(kPageBytes + 1), json(0), json(2 * kPageBytes), json(kFile),
                             json(uint64_t{1} << 63), json(INT64_MAX / 4096 * 4096)})
    EXPECT_THAT(entry_refusal(2, "offset", offset), Ne("ok")) << offset;
  EXPECT_THAT(entry_refusal(1, "offset", 3.5), HasSubstr("offset"));
  EXPECT_THAT(entry_refusal(1, "offset", "4096"), HasSubstr("offset"));
  for (const json& bytes : {json(3 * kPageBytes), json(kFile), json(INT64_MAX)})
    EXPECT_THAT(entry_refusal(1, "bytes", bytes), HasSubstr("lies outside the file")) << bytes;
  EXPECT_THAT(entry_refusal(1, "bytes", -1), HasSubstr("bytes"));
  EXPECT_THAT(entry_refusal(1, "bytes", UINT64_MAX), HasSubstr("bytes"));
  EXPECT_THAT(entry_refusal(1, "name", "entry0"), HasSubstr("two entries 'entry0'"));
  EXPECT_THAT(entry_refusal(1, "name", kManifestEntry), HasSubstr("two entries"));
  EXPECT_THAT(entry_refusal(1, "checksum", nullptr), HasSubstr("checksum"));
  EXPECT_EQ(entry_refusal(2, "bytes", kFile - 5 * kPageBytes), "ok");
}

TEST(Manifest, RefusesFieldsThatCannotBe) {
  EXPECT_EQ(refusal(manifest()), "ok");
  const std::pair<const char*, json> wrong[] = {
      {"threads", 0},    {"threads", 1025},   {"threads", json()},   {"max_error", -1},
      {"features", 1},   {"features", {1}},   {"loaders", {1}},      {"loaders", {{"a", 1}}},
      {"entries", "no"}, {"entries", {1, 2}}, {"entries", {{"a"}}},  {"version", 1},
      {"model", json()}, {"format", 5},       {"format", UINT64_MAX}};
  for (const auto& [field, value] : wrong) {
    json changed = manifest();
    changed[field] = value;
    EXPECT_NE(refusal(changed), "ok") << field << ": " << value;
  }
  const json whole = manifest();
  for (const auto& [field, value] : whole.items()) {
    json changed = whole;
    changed.erase(field);
    EXPECT_NE(refusal(changed), "ok") << field << " is missing";
  }
  json older = manifest();
  older["format"] = 0;
  EXPECT_THAT(refusal(older), HasSubstr("its format is 0; this Collage reads 4"));
  json many = manifest();
  many["entries"] = json(std::vector<int>(100000));
  EXPECT_THAT(refusal(many), HasSubstr("100000 entries"));
  EXPECT_FALSE(parse_manifest("", kFile).ok());
  EXPECT_FALSE(parse_manifest(std::string(100000, '['), kFile).ok());
}

TEST(Checksum, ChangesWithEveryBit) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{200}, size_t{1500}}) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7);
    std::set<std::string> sums = {checksum_of(text, 1)};
    for (size_t i = 0; i < 8 * bytes; ++i) {
      std::string changed = text;
      changed[i / 8] ^= static_cast<char>(1 << (i % 8));
      sums.insert(checksum_of(changed, 1));
    }
    EXPECT_EQ(sums.size(), 8 * bytes + 1);
  }
}

TEST(Checksum, TellsLengthsAndOrdersApart) {
  std::set<std::string> sums;
  for (size_t bytes = 0; bytes < 300; ++bytes)
    sums.insert(checksum_of(std::string(bytes, '\0'), 1));
  EXPECT_EQ(sums.size(), 300u);
  const std::string a(64, 'a'), b(64, 'b');
  EXPECT_NE(checksum_of(a + b, 1), checksum_of(b + a, 1));
  // Both sign bits of two floats that one sum adds up.
  std::string floats(1024, '\1');
  floats[3] ^= '\x80', floats[67] ^= '\x80';
  EXPECT_NE(checksum_of(floats, 1), checksum_of(std::string(1024, '\1'), 1));
}

TEST(Checksum, DoesNotDependOnThreads) {
  std::string text(size_t{9} << 20, '\0');
  // No two MBs of it are equal.
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 15);
  const std::string alone = checksum_of(text, 1);
  for (const int threads : {0, 2, 3, 100}) EXPECT_EQ(checksum_of(text, threads), alone);
  std::swap_ranges(text.begin(), text.begin() + (1 << 20), text.begin() + (3 << 20));
  EXPECT_NE(checksum_of(text, 2), alone);
}

}  // namespace
}  // namespace collage
