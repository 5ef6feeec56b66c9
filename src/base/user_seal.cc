#include "base/user_seal.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/hexadecimal.h"
#include "base/log.h"

namespace collage {

namespace {

constexpr size_t kKeyBytes = 32;

std::string random_key() {
  std::string key(kKeyBytes, '\0');
  for (size_t had = 0; had < key.size();) {
    const ssize_t n = ::getrandom(key.data() + had, key.size() - had, 0);
    if (n > 0) had += static_cast<size_t>(n);
  }
  return key;
}

std::string text_of(const std::string& kind, const std::string& key, const std::string& value) {
  return kind + "\n" + key + "\n" + value;
}

// Made under another name and linked: of several processes, the first one's stays, whole.
Result<std::string> key_in(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "seal.key";
  if (Result<std::string> key = read_file(file); key && key->size() == kKeyBytes) return key;
  std::string made = file.string() + ".XXXXXX";
  const int fd = ::mkostemp(made.data(), O_CLOEXEC);  // of mode 0600
  if (fd < 0) return internal_error("cannot make {}", file.string());
  const std::string key = random_key();
  const bool written = write_all(fd, key.data(), key.size()) && ::fsync(fd) == 0;
  ::close(fd);
  if (written) (void)::link(made.c_str(), file.c_str());
  ::unlink(made.c_str());
  const std::string kept = TRY(read_file(file));
  return kept.size() == kKeyBytes ? Result<std::string>(kept)
                                  : internal_error("{} is no key", file.string());
}

}  // namespace

UserSeal UserSeal::of_user() {
  const Result<std::filesystem::path> folder = cache_folder();
  const Result<std::string> key = folder ? key_in(*folder) : folder.status();
  if (!key)
    log::warn("what is measured now is measured again by the next process: {}",
              key.status().to_string());
  UserSeal seal(key ? *key : random_key());
  if (!folder) return seal;
  // A key that cannot be used is no reason to believe more, or to measure nothing.
  const auto read = [&](const char* name, const auto& parse) {
    const std::filesystem::path file = *folder / name;
    const Result<std::string> pem = read_file(file);
    if (!pem) return;
    if (const Status parsed = parse(*pem); !parsed.ok())
      log::warn("{}: {}", file.string(), parsed.message());
  };
  read("signing.pem", [&](const std::string& pem) -> Status {
    seal.signing_ = TRY(SigningKey::parse(pem));
    seal.trusted_.push_back(PublicKey::of(*seal.signing_));
    return {};
  });
  read("trusted.pem", [&](const std::string& pem) -> Status {
    seal.trusted_.push_back(TRY(PublicKey::parse(pem)));
    return {};
  });
  return seal;
}

std::string UserSeal::hash_of(const std::string& kind, const std::string& key,
                              const std::string& value) const {
  const std::string text = text_of(kind, key, value);
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &length);
  return hexadecimal(digest, length);
}

std::string UserSeal::of(const std::string& kind, const std::string& key,
                         const std::string& value) const {
  return signing_ ? signing_->sign(text_of(kind, key, value)) : hash_of(kind, key, value);
}

bool UserSeal::is_valid(const std::string& seal, const std::string& kind, const std::string& key,
                        const std::string& value) const {
  if (seal.size() != kSignatureDigits) return seal == hash_of(kind, key, value);
  return std::any_of(trusted_.begin(), trusted_.end(), [&](const PublicKey& owner) {
    return owner.has_signed(text_of(kind, key, value), seal);
  });
}

}  // namespace collage
