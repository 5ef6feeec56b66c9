// Artifacts as ZIP files (libzip): every entry is stored as it is and begins on a page, so that it
// can be mapped; the manifest is the last one. The archive's comment seals what no entry's hash
// covers, the headers and the manifest among it: every byte of the file is under some hash.
// Signed, a signature of all in front of it stands in front of the seal, which covers it too.
//
//   header | padding | plan.json | header | padding | weights | … | header | manifest.json |
//   directory | "ed25519 " and 128 digits, where signed | SHA-256 of all that is no entry's data
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "artifact/signature.h"
#include "runtime/saved_kernel.h"

namespace collage {

struct ZipEntry {
  std::string name;
  SharedBytes content;
};

// Fills in the manifest's entries. `key`, where given, signs.
Status write_zip(const std::filesystem::path& path, const std::vector<ZipEntry>& entries,
                 Manifest manifest, const SigningKey* key = nullptr);

// That the file in memory is as the key's owner signed it, every byte; nothing of it is
// interpreted. The seal, which comes after the signature, is what `read_zip` makes of the rest.
// kBadModel.
Status check_signature(std::string_view file, const PublicKey& key);

// The manifest of a file in memory; entries' data is not looked at. kBadModel where the file is
// damaged or none of ours.
Result<Manifest> read_zip(std::string_view file);

}  // namespace collage
