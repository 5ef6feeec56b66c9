// Artifacts as ZIP files (libzip): every entry is stored as it is and begins on a page, so that it
// can be mapped; the manifest is the last one. The archive's comment seals what no entry's hash
// covers, the headers and the manifest among it: every byte of the file is under some hash.
//
//   header | padding | plan.json | header | padding | weights | … | header | manifest.json |
//   directory | SHA-256 of all that is no entry's data
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "runtime/saved_kernel.h"

namespace collage {

struct ZipEntry {
  std::string name;
  SharedBytes content;
};

// Fills in the manifest's entries; publishes the file when it is whole.
Status write_zip(const std::filesystem::path& path, const std::vector<ZipEntry>& entries,
                 Manifest manifest);

// The manifest of a file in memory; entries' data is not looked at. kBadModel where the file is
// damaged or none of ours.
Result<Manifest> read_zip(std::string_view file);

}  // namespace collage
