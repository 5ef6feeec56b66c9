// A file that somebody named for what is written: written whole under a name of its own, then given
// its place, so that a reader never sees half of it and a failure leaves what was there.
//
// Symbolic links are followed: the file that they lead to is replaced, never the link. What is no
// regular file (a device, a pipe, an open file as /dev/stdout) is never replaced: what was written
// is copied into it.
//
//   OutputFile file = TRY(OutputFile::create("report.json"));
//   write_all(file.descriptor(), …);
//   return file.publish();
#pragma once

#include <filesystem>

#include "base/result.h"

namespace collage {

class OutputFile {
 public:
  // An empty file beside the place, or in the folder of temporary files where the place is no
  // regular file.
  static Result<OutputFile> create(const std::filesystem::path& named);
  // Why `create` could not, as far as that can be told without writing.
  static Status check(const std::filesystem::path& named);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // unpublished, it goes

  // Where to write: through the descriptor, or by others under this name, who may put another file
  // in its place.
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& temporary() const { return temporary_; }
  // Whole on the disk, then in its place.
  Status publish();

 private:
  OutputFile(std::filesystem::path named, std::filesystem::path place)
      : named_(std::move(named)), place_(std::move(place)) {}

  std::filesystem::path named_, place_;  // as it was given, and where links lead
  int written_through_ = -1;             // the device in its place; -1: a regular file, or none yet
  std::filesystem::path temporary_;      // "" once it was published
  int descriptor_ = -1;                  // of the temporary file
};

}  // namespace collage
