// A file that a user names for output: written whole under a temporary name, then renamed, so that
// a reader never sees half of it and a failure leaves the old file.
//
// Symbolic links are followed: the file that they lead to is replaced, never the link. A file that
// is not regular (a device, a pipe, an open file as /dev/stdout) is never replaced: the output is
// copied into it.
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
  // Makes an empty file beside the named one, or in the folder of temporary files if the named one
  // is not regular.
  static Result<OutputFile> create(const std::filesystem::path& named);
  // Returns why `create` would fail, as far as that can be determined without writing.
  static Status check(const std::filesystem::path& named);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // unpublished, it goes

  // Write through the descriptor, or under this name; another program may put another file in its
  // place.
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& temporary() const { return temporary_; }
  // Syncs the file to the disk, then renames it.
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
