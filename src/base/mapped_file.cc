#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

namespace collage {

namespace {

// A file and its state.
using FileId = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;

FileId id_of(const struct stat& info) {
  return {info.st_dev,          info.st_ino,         info.st_size,        info.st_mtim.tv_sec,
          info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

struct Mappings {
  std::mutex mutex;
  std::map<FileId, std::weak_ptr<const MappedFile>> known;
  std::map<const char*, size_t> ranges;  // bytes, by where they begin
};

Mappings& mappings() {
  static Mappings* const all = new Mappings();  // tensors may outlive static objects
  return *all;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return internal_error("no file to map");
  Mappings& all = mappings();
  // Outside the lock: where it is the last owner, its destructor takes the lock.
  std::shared_ptr<const MappedFile> known;
  std::lock_guard lock(all.mutex);
  std::weak_ptr<const MappedFile>& place = all.known[id_of(info)];
  if ((known = place.lock()) != nullptr) return known;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return internal_error("mmap: {}", std::strerror(errno));
  all.ranges.emplace(static_cast<const char*>(data), bytes);
  known.reset(new MappedFile(static_cast<const char*>(data), bytes));
  place = known;
  std::erase_if(all.known, [](const auto& entry) { return entry.second.expired(); });
  return known;
}

MappedFile::~MappedFile() {
  {
    Mappings& all = mappings();
    std::lock_guard lock(all.mutex);
    all.ranges.erase(data_);
  }
  ::munmap(const_cast<char*>(data_), bytes_);
}

bool lies_in_mapped_file(const void* data) {
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  auto after = all.ranges.upper_bound(static_cast<const char*>(data));
  if (after == all.ranges.begin()) return false;
  const auto& [begin, bytes] = *--after;
  return static_cast<const char*>(data) < begin + bytes;
}

void forget_mapped_pages() {
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  for (const auto& [begin, bytes] : all.ranges)
    ::madvise(const_cast<char*>(begin), bytes, MADV_DONTNEED);
}

}  // namespace collage
