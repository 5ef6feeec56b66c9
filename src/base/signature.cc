#include "base/signature.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>

#include "base/check.h"
#include "base/hexadecimal.h"

namespace collage {

namespace {

constexpr size_t kSignatureBytes = kSignatureDigits / 2;

using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// `read` takes PEM from a BIO; null where there is no key of Ed25519.
template <typename Read>
std::shared_ptr<void> read_key(const std::string& pem, const Read& read) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> source(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  EVP_PKEY* key = source != nullptr ? read(source.get()) : nullptr;
  std::shared_ptr<void> held(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
  return key != nullptr && EVP_PKEY_id(key) == EVP_PKEY_ED25519 ? held : nullptr;
}

}  // namespace

Result<SigningKey> SigningKey::parse(const std::string& pem) {
  std::shared_ptr<void> key = read_key(
      pem, [](BIO* source) { return PEM_read_bio_PrivateKey(source, nullptr, nullptr, nullptr); });
  if (key == nullptr) return usage_error("this is no private key of Ed25519 in PEM");
  return SigningKey(std::move(key));
}

Result<std::optional<SigningKey>> SigningKey::parse_if_given(const std::string& pem) {
  if (pem.empty()) return std::optional<SigningKey>();
  return std::optional<SigningKey>(TRY(parse(pem)));
}

std::string SigningKey::sign(std::string_view message) const {
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::array<unsigned char, kSignatureBytes> signature;
  size_t bytes = signature.size();
  const bool is_signed = EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr,
                                            static_cast<EVP_PKEY*>(key_.get())) == 1 &&
                         EVP_DigestSign(digest.get(), signature.data(), &bytes, bytes_of(message),
                                        message.size()) == 1;
  COLLAGE_CHECK(is_signed && bytes == kSignatureBytes, "Ed25519 does not sign");
  return hexadecimal(signature.data(), bytes);
}

Result<PublicKey> PublicKey::parse(const std::string& pem) {
  std::shared_ptr<void> key = read_key(
      pem, [](BIO* source) { return PEM_read_bio_PUBKEY(source, nullptr, nullptr, nullptr); });
  if (key == nullptr) return usage_error("this is no public key of Ed25519 in PEM");
  return PublicKey(std::move(key));
}

bool PublicKey::has_signed(std::string_view message, std::string_view signature) const {
  const std::optional<std::string> bytes = from_hexadecimal(signature);
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return bytes && bytes->size() == kSignatureBytes &&
         EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr,
                              static_cast<EVP_PKEY*>(key_.get())) == 1 &&
         EVP_DigestVerify(digest.get(), bytes_of(*bytes), bytes->size(), bytes_of(message),
                          message.size()) == 1;
}

}  // namespace collage
