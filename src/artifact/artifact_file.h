// An artifact's file in memory: mapped, or given by the caller. Opening it checks everything but
// the entries' data, which is compared with its checksum when it is first asked for; what nobody
// asks for is not read, and takes no memory.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "artifact/manifest.h"
#include "artifact/signature.h"
#include "runtime/saved_kernel.h"

namespace collage {

class ArtifactFile : public std::enable_shared_from_this<ArtifactFile> {
 public:
  // With a key, it is refused unless the key's owner signed it (kBadModel), and is read into memory
  // of this process first: who changes the file afterwards changes nothing.
  static Result<std::shared_ptr<ArtifactFile>> open(
      const std::filesystem::path& path, const std::optional<PublicKey>& signer = std::nullopt);
  // Copied unless it begins on a multiple of 64 bytes and `owner` keeps it.
  static Result<std::shared_ptr<ArtifactFile>> from_memory(
      const void* data, size_t bytes, std::shared_ptr<const void> owner,
      const std::optional<PublicKey>& signer = std::nullopt);

  const Manifest& manifest() const { return manifest_; }
  // That its program runs with: those it was told, else those that it was compiled for where
  // somebody chose them, else the cores that this process may use.
  int threads() const;
  // Before anything is loaded from it; 0: as it says itself.
  void use_threads(int threads) { told_threads_ = threads; }
  // An entry's data, which keeps the file in memory. kBadModel: there is none, or it is damaged.
  Result<SharedBytes> entry(const std::string& name);
  // The same, neither read nor compared: for whoever needs to know what lies there, not its values.
  Result<SharedBytes> unread_entry(const std::string& name);
  // Gives the memory of an entry back, as far as it is a mapped file's: whoever reads it again has
  // it read from the file.
  void forget(const std::string& name);
  // Compares every entry with its SHA-256: slower than checksums, and nothing gets past it.
  Status check_hashes() const;

  // Bytes of the mapped file that are in this process's memory; 0 where the caller gave it.
  size_t resident_bytes() const;
  // Seconds that opening it and mapping what was asked for took, and computing checksums.
  double map_seconds() const { return map_seconds_; }
  double check_seconds() const { return check_seconds_; }

 private:
  ArtifactFile(SharedBytes content, Manifest manifest, bool is_mapped)
      : content_(std::move(content)), manifest_(std::move(manifest)), is_mapped_(is_mapped) {}
  static Result<std::shared_ptr<ArtifactFile>> create(
      SharedBytes content, bool is_mapped, const std::optional<PublicKey>& signer = std::nullopt);
  const char* data_of(const ManifestEntry& entry) const {
    return content_.text().data() + entry.offset;
  }

  const SharedBytes content_;
  const Manifest manifest_;
  const bool is_mapped_;
  int told_threads_ = 0;
  std::mutex mutex_;
  std::set<std::string> checked_;  // entries whose checksum was compared
  double map_seconds_ = 0, check_seconds_ = 0;
};

}  // namespace collage
