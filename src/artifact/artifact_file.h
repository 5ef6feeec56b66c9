// An artifact's file in memory: mapped, or given by the caller. Opening it checks everything but
// the entries' data, which is compared with its checksum when it is first read; unread entries take
// no memory.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "artifact/manifest.h"
#include "base/signature.h"
#include "runtime/saved_kernel.h"

namespace collage {

class ArtifactFile : public std::enable_shared_from_this<ArtifactFile> {
 public:
  // Opens a file. With a key, it is refused unless the key's owner signed it (kBadModel), and is
  // read into memory of this process first, so that later changes of the file have no effect.
  static Result<std::shared_ptr<ArtifactFile>> open(
      const std::filesystem::path& path, const std::optional<PublicKey>& signer = std::nullopt);
  // Copies the bytes unless they begin on a multiple of 64 bytes and `owner` keeps them.
  static Result<std::shared_ptr<ArtifactFile>> from_memory(
      const void* data, size_t bytes, std::shared_ptr<const void> owner,
      const std::optional<PublicKey>& signer = std::nullopt);

  const Manifest& manifest() const { return manifest_; }
  // Threads that its program runs with: those of use_threads, else those that it was compiled for
  // if the user chose them, else the cores that this process may use.
  int threads() const;
  // Call it before anything is loaded; 0: as the file states.
  void use_threads(int threads) { told_threads_ = threads; }
  // Returns an entry's data, which keeps the file in memory. kBadModel: there is none, or it is
  // damaged.
  Result<SharedBytes> entry(const std::string& name);
  // Returns the entry without reading or comparing it, for callers that need its place and not its
  // values.
  Result<SharedBytes> unread_entry(const std::string& name);
  // Gives the memory of an entry back, as far as it is a mapped file's; a later access reads it
  // from the file.
  void forget(const std::string& name);
  // Compares every entry with its SHA-256: slower than checksums, and also safe against malice.
  Status check_hashes() const;

  // Bytes of the mapped file that are in this process's memory; 0 if the caller gave the bytes.
  size_t resident_bytes() const;
  // Seconds spent on opening and mapping, and on computing checksums.
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
