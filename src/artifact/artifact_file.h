// An artifact's file in memory: mapped, or given by the caller. Opening it checks everything but
// the entries' data, which is compared with its hash when it is first asked for.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "artifact/manifest.h"
#include "runtime/saved_kernel.h"

namespace collage {

class ArtifactFile : public std::enable_shared_from_this<ArtifactFile> {
 public:
  static Result<std::shared_ptr<ArtifactFile>> open(const std::filesystem::path& path);
  // Copied unless it begins on a multiple of 64 bytes and `owner` keeps it.
  static Result<std::shared_ptr<ArtifactFile>> from_memory(const void* data, size_t bytes,
                                                           std::shared_ptr<const void> owner);

  const Manifest& manifest() const { return manifest_; }
  // An entry's data, which keeps the file in memory. kBadModel: there is none, or it is damaged.
  Result<SharedBytes> entry(const std::string& name);

 private:
  ArtifactFile(SharedBytes content, Manifest manifest)
      : content_(std::move(content)), manifest_(std::move(manifest)) {}
  static Result<std::shared_ptr<ArtifactFile>> create(SharedBytes content);

  SharedBytes content_;
  Manifest manifest_;
  std::mutex mutex_;
  std::set<std::string> checked_;  // entries whose hash was compared
};

}  // namespace collage
