// Artifacts as ZIP files (libzip): every entry is stored uncompressed and begins on a page, so that
// it can be mapped; the manifest is the last one. The archive's comment holds a seal, a hash of all
// that no entry's hash covers (headers and manifest): every byte of the file is under some hash. In
// a signed file, a signature of all bytes before it stands in front of the seal, which covers it
// too.
//
//   header | padding | plan.json | header | padding | weights | … | header | manifest.json |
//   directory | "ed25519 " and 128 digits, where signed | SHA-256 of all that is no entry's data
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "base/signature.h"
#include "runtime/saved_kernel.h"

namespace collage {

struct ZipEntry {
  std::string name;
  SharedBytes content;
};

// Fills in the manifest's entries. `key`, if given, signs.
Status write_zip(const std::filesystem::path& path, const std::vector<ZipEntry>& entries,
                 Manifest manifest, const SigningKey* key = nullptr);

// Checks that the file in memory is as the key's owner signed it, every byte; nothing of it is
// interpreted. `read_zip` checks the seal, which comes after the signature. kBadModel.
Status check_signature(std::string_view file, const PublicKey& key);

// Returns the manifest of a file in memory without reading entries' data. kBadModel: the file is
// damaged or not an artifact.
Result<Manifest> read_zip(std::string_view file);

}  // namespace collage
