// Signatures: Ed25519 (libcrypto), by keys in PEM as `openssl genpkey -algorithm
// ed25519` makes them and `openssl pkey -pubout` their public halves.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace collage {

inline constexpr size_t kSignatureDigits = 128;  // hexadecimal

class SigningKey {
 public:
  // kUsage: the text is no private key of Ed25519.
  static Result<SigningKey> parse(const std::string& pem);
  // Returns none for an empty text.
  static Result<std::optional<SigningKey>> parse_if_given(const std::string& pem);
  std::string sign(std::string_view message) const;

 private:
  friend class PublicKey;
  explicit SigningKey(std::shared_ptr<void> key) : key_(std::move(key)) {}
  std::shared_ptr<void> key_;  // libcrypto's
};

class PublicKey {
 public:
  // kUsage: the text is no public key of Ed25519.
  static Result<PublicKey> parse(const std::string& pem);
  static PublicKey of(const SigningKey& key) { return PublicKey(key.key_); }
  bool has_signed(std::string_view message, std::string_view signature) const;

 private:
  explicit PublicKey(std::shared_ptr<void> key) : key_(std::move(key)) {}
  std::shared_ptr<void> key_;
};

}  // namespace collage
