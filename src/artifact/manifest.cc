#include "artifact/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/processor.h"
#include "collage/version.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr size_t kMostEntries = 1 << 16;

Result<ManifestEntry> read_entry(const json& value, size_t begin, size_t file_bytes) {
  const JsonFields fields(value);
  ManifestEntry entry;
  entry.name = TRY(fields.text("name"));
  entry.offset = static_cast<size_t>(TRY(fields.integer("offset", 0, INT64_MAX)));
  entry.bytes = static_cast<size_t>(TRY(fields.integer("bytes", 0, INT64_MAX)));
  entry.checksum = TRY(fields.text("checksum"));
  entry.sha256 = TRY(fields.text("sha256"));
  if (entry.offset % kPageBytes != 0 || entry.offset < begin || entry.offset > file_bytes ||
      entry.bytes > file_bytes - entry.offset)
    return bad_model("entry '{}' lies outside the file or in another one", printable(entry.name));
  return entry;
}

Result<std::string> text_of(const json& value) {
  if (!value.is_string()) return bad_model("a name that is no text");
  return value.get<std::string>();
}

Result<Manifest> read_manifest(std::string_view text, size_t file_bytes) {
  const json value = parse_json(text);
  const JsonFields fields(value);
  const int64_t format = TRY(fields.integer("format", 0, INT32_MAX));
  if (format != kArtifactFormat)
    return error(ErrorCode::kUnavailable, "its format is {}; this Collage reads {}", format,
                 kArtifactFormat);
  Manifest manifest;
  manifest.version = TRY(fields.text("version"));
  manifest.model = TRY(fields.text("model"));
  manifest.threads = static_cast<int>(TRY(fields.integer("threads", 1, 1024)));
  manifest.any_threads = TRY(fields.flag("any_threads", false));
  manifest.max_error = TRY(fields.number("max_error", {0, 1}));
  for (const json& feature : *TRY(fields.array("features")))
    manifest.features.push_back(TRY(text_of(feature)));
  for (const auto& [name, version] : TRY(fields.object("loaders"))->items())
    manifest.loaders[name] = TRY(text_of(version));
  const json& entries = *TRY(fields.array("entries"));
  if (entries.size() > kMostEntries) return bad_model("{} entries", entries.size());
  size_t begin = 0;
  std::set<std::string> names = {kManifestEntry};
  for (const json& entry : entries) {
    manifest.entries.push_back(TRY(read_entry(entry, begin, file_bytes)));
    const ManifestEntry& read = manifest.entries.back();
    if (!names.insert(read.name).second)
      return bad_model("there are two entries '{}'", printable(read.name));
    begin = read.offset + read.bytes;
  }
  return manifest;
}

}  // namespace

const ManifestEntry* Manifest::find(std::string_view name) const {
  for (const ManifestEntry& entry : entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string manifest_text(const Manifest& manifest) {
  json list = json::array();
  for (const ManifestEntry& entry : manifest.entries)
    list.push_back({{"name", entry.name},
                    {"offset", entry.offset},
                    {"bytes", entry.bytes},
                    {"checksum", entry.checksum},
                    {"sha256", entry.sha256}});
  return json{{"format", kArtifactFormat},
              {"version", manifest.version},
              {"model", manifest.model},
              {"threads", manifest.threads},
              {"any_threads", manifest.any_threads},
              {"max_error", manifest.max_error},
              {"features", manifest.features},
              {"loaders", manifest.loaders},
              {"entries", std::move(list)}}
      .dump(1, ' ', false, json::error_handler_t::replace);
}

Result<Manifest> parse_manifest(std::string_view text, size_t file_bytes) {
  return or_bad_model(read_manifest(text, file_bytes));
}

Status check_host(const Manifest& manifest) {
  if (manifest.version != COLLAGE_VERSION)
    return error(ErrorCode::kUnavailable, "it was made by Collage {}; this is {}",
                 printable(manifest.version), COLLAGE_VERSION);
  if (const std::string missing = lacking_features(manifest.features); !missing.empty())
    return error(ErrorCode::kUnavailable,
                 "it was made for a processor with {}, which this one lacks", missing);
  return {};
}

}  // namespace collage
