#include "artifact/artifact_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "artifact/checksum.h"
#include "artifact/zip.h"
#include "base/hash.h"
#include "base/integers.h"
#include "base/printable.h"
#include "base/resident_memory.h"
#include "base/stopwatch.h"
#include "runtime/huge_pages.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

constexpr size_t kAlignment = 64;

Result<SharedBytes> map(int fd, size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return internal_error("mmap: {}", std::strerror(errno));
  return SharedBytes{std::shared_ptr<void>(memory, [bytes](void* p) { ::munmap(p, bytes); }),
                     bytes};
}

Result<SharedBytes> read(int fd, size_t bytes) {
  std::shared_ptr<void> memory = TRY(allocate_on_huge_pages(bytes));
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = ::pread(fd, static_cast<char*>(memory.get()) + done, bytes - done,
                                  static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return internal_error("{}", std::strerror(errno));
    if (count == 0) return bad_model("it ended while it was read");
    done += static_cast<size_t>(count);
  }
  return SharedBytes{std::move(memory), bytes};
}

Result<SharedBytes> content_of(const std::filesystem::path& path, bool is_mapped) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return error(ErrorCode::kUsage, "{}", std::strerror(errno));
  const std::shared_ptr<void> closing(nullptr, [fd](void*) { ::close(fd); });
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return usage_error("this is no file");
  if (info.st_size == 0) return bad_model("this is no artifact: it is empty");
  const auto bytes = static_cast<size_t>(info.st_size);
  return is_mapped ? map(fd, bytes) : read(fd, bytes);
}

// The whole entry at once, which is quicker than a fault for every few pages; a hint.
void map_pages(const char* data, size_t bytes) {
#ifdef MADV_POPULATE_READ
  ::madvise(const_cast<char*>(data), bytes, MADV_POPULATE_READ);
#else
  (void)data, (void)bytes;
#endif
}

}  // namespace

Result<std::shared_ptr<ArtifactFile>> ArtifactFile::create(SharedBytes content, bool is_mapped,
                                                           const std::optional<PublicKey>& signer) {
  if (signer) TRY(check_signature(content.text(), *signer));
  Manifest manifest = TRY(read_zip(content.text()));
  return std::shared_ptr<ArtifactFile>(
      new ArtifactFile(std::move(content), std::move(manifest), is_mapped));
}

Result<std::shared_ptr<ArtifactFile>> ArtifactFile::open(const std::filesystem::path& path,
                                                         const std::optional<PublicKey>& signer) {
  const Stopwatch watch;
  const bool is_mapped = !signer;
  std::shared_ptr<ArtifactFile> file =
      TRY(create(TRY(content_of(path, is_mapped)), is_mapped, signer));
  file->map_seconds_ = watch.seconds();
  return file;
}

Result<std::shared_ptr<ArtifactFile>> ArtifactFile::from_memory(
    const void* data, size_t bytes, std::shared_ptr<const void> owner,
    const std::optional<PublicKey>& signer) {
  if (owner != nullptr && reinterpret_cast<uintptr_t>(data) % kAlignment == 0)
    return create({{std::move(owner), data}, bytes}, false, signer);
  std::shared_ptr<void> copy = TRY(allocate_on_huge_pages(bytes));
  if (bytes > 0) std::memcpy(copy.get(), data, bytes);
  return create({std::move(copy), bytes}, false, signer);
}

int ArtifactFile::threads() const {
  if (told_threads_ > 0) return told_threads_;
  return manifest_.any_threads ? ThreadTeam::available_cores() : manifest_.threads;
}

Result<SharedBytes> ArtifactFile::unread_entry(const std::string& name) {
  const ManifestEntry* found = manifest_.find(name);
  if (found == nullptr) return bad_model("there is no entry '{}'", printable(name));
  return SharedBytes{{shared_from_this(), data_of(*found)}, found->bytes};
}

Result<SharedBytes> ArtifactFile::entry(const std::string& name) {
  SharedBytes data = TRY(unread_entry(name));
  const std::lock_guard lock(mutex_);
  if (checked_.count(name) > 0) return data;
  Stopwatch watch;
  if (is_mapped_ && data.bytes > 0) map_pages(data.text().data(), data.bytes);
  map_seconds_ += watch.restart();
  const int team = std::min(threads(), ThreadTeam::available_cores());
  if (checksum_of(data.text(), team) != manifest_.find(name)->checksum)
    return bad_model("entry '{}' is damaged: it does not fit its checksum", printable(name));
  check_seconds_ += watch.seconds();
  checked_.insert(name);
  return data;
}

void ArtifactFile::forget(const std::string& name) {
  const ManifestEntry* found = manifest_.find(name);
  if (!is_mapped_ || found == nullptr || found->bytes == 0) return;
  // To the end of its last page, which at most the next entry's header shares.
  ::madvise(const_cast<char*>(data_of(*found)), round_up(found->bytes, kPageBytes), MADV_DONTNEED);
}

Status ArtifactFile::check_hashes() const {
  for (const ManifestEntry& entry : manifest_.entries)
    if (sha256_hex({data_of(entry), entry.bytes}) != entry.sha256)
      return bad_model("entry '{}' is damaged: it does not fit its SHA-256", printable(entry.name));
  return {};
}

size_t ArtifactFile::resident_bytes() const {
  return is_mapped_ ? resident_bytes_of(content_.data.get(), content_.bytes) : 0;
}

}  // namespace collage
