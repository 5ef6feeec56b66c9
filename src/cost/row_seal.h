// Who wrote a row of a cost database. Every row that this program writes bears a seal: a keyed hash
// of it (HMAC-SHA-256) under a key that the user's cache folder keeps (seal.key, 32 random bytes,
// mode 0600). A row whose seal is missing or wrong was imported, copied from elsewhere or edited:
// it is foreign, and believed in nothing that this machine can see for itself (database.h). A seal
// keeps out what comes in files, not who can read the user's own files.
#pragma once

#include <string>

namespace collage {

class RowSeal {
 public:
  // With the key of the cache folder, made where there is none; with one of this process's own
  // where the folder cannot be used.
  static RowSeal of_user();
  std::string of(const std::string& kind, const std::string& key, const std::string& value) const;

 private:
  explicit RowSeal(std::string key) : key_(std::move(key)) {}
  std::string key_;
};

}  // namespace collage
