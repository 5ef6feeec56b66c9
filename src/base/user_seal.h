// Who wrote something that others could have written too: a row of a cost database, a kernel in a
// folder that machines share. A seal is a keyed hash (HMAC-SHA-256) under a key that the user's
// cache folder keeps (seal.key, 32 random bytes, mode 0600). What has none, or a wrong one, was
// imported, copied from elsewhere or edited. A seal keeps out what comes in files, not who can read
// the user's own files.
//
// Where the cache folder holds `signing.pem`, a private key (signature.h), what is sealed is signed
// by it; who holds its public key alone, as `trusted.pem`, believes what was signed and can make
// nothing that others would believe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/signature.h"

namespace collage {

class UserSeal {
 public:
  // With the key of the cache folder, made where there is none; with one of this process's own
  // where the folder cannot be used.
  static UserSeal of_user();
  // The hash, which owners of the same key alone believe: 64 hexadecimal digits.
  std::string hash_of(const std::string& kind, const std::string& key,
                      const std::string& value) const;
  // It, or a signature.
  std::string of(const std::string& kind, const std::string& key, const std::string& value) const;
  // Whether a seal is this user's, or of whom this user trusts.
  bool is_valid(const std::string& seal, const std::string& kind, const std::string& key,
                const std::string& value) const;

 private:
  explicit UserSeal(std::string key) : key_(std::move(key)) {}
  std::string key_;
  std::optional<SigningKey> signing_;
  std::vector<PublicKey> trusted_;
};

}  // namespace collage
