#include "artifact/zip.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "artifact/checksum.h"
#include "base/hash.h"
#include "base/integers.h"
#include "base/printable.h"

namespace collage {

namespace {

constexpr size_t kHashDigits = 64;
constexpr std::string_view kSigned = "ed25519 ";       // in front of a signature
constexpr size_t kLocalHeader = 30, kFieldHeader = 4;  // bytes, before the name and the padding
constexpr size_t kLongSizes = kFieldHeader + 16;       // libzip's field for data of 4 GiB or more
constexpr uint16_t kAlignmentField = 0xD935;           // as Android's zipalign marks its padding
constexpr uint16_t kFirstDay = 1 << 5 | 1;             // 1980-01-01: equal files of equal plans
constexpr zip_uint64_t kMostManifest = zip_uint64_t{64} << 20;

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;

Status zip_failure(zip_t* archive) { return internal_error("libzip: {}", zip_strerror(archive)); }

// Of a header in front of `bytes` of data, without the padding.
size_t header_bytes(const std::string& name, size_t bytes) {
  return kLocalHeader + name.size() + (bytes >= UINT32_MAX ? kLongSizes : 0) + kFieldHeader;
}

// An extra field such that the data behind the header begins on a page.
std::string padding(size_t header_end) {
  const size_t least = header_end + 2;
  std::string field(2 + round_up(least, kPageBytes) - least, '\0');
  field[0] = static_cast<char>(kPageBytes & 0xff);
  field[1] = static_cast<char>(kPageBytes >> 8);
  return field;
}

// One entry behind what was added so far; says where its data begins.
Result<size_t> add_entry(zip_t* archive, const std::string& name, const void* data, size_t bytes,
                         size_t begin) {
  zip_source_t* source = zip_source_buffer(archive, data, bytes, 0);
  if (source == nullptr) return zip_failure(archive);
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
  if (index < 0) {
    zip_source_free(source);
    return zip_failure(archive);
  }
  const auto at = static_cast<zip_uint64_t>(index);
  const size_t header_end = begin + header_bytes(name, bytes);
  const std::string field = padding(header_end);
  if (zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, at, 0, kFirstDay, 0) != 0 ||
      zip_file_extra_field_set(archive, at, kAlignmentField, ZIP_EXTRA_FIELD_NEW,
                               reinterpret_cast<const zip_uint8_t*>(field.data()),
                               static_cast<zip_uint16_t>(field.size()), ZIP_FL_LOCAL) != 0)
    return zip_failure(archive);
  return header_end + field.size();
}

// `comment` holds the place of what is written over it when the rest is there.
Status write_archive(const std::filesystem::path& path, const std::vector<ZipEntry>& entries,
                     Manifest& manifest, std::string& text, const std::string& comment) {
  int failure = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &failure), zip_discard);
  if (archive == nullptr) return internal_error("libzip: error {}", failure);
  size_t end = 0;
  for (const ZipEntry& entry : entries) {
    const std::string_view content = entry.content.text();
    const size_t offset =
        TRY(add_entry(archive.get(), entry.name, content.data(), content.size(), end));
    manifest.entries.push_back({entry.name, offset, content.size(),
                                checksum_of(content, manifest.threads), sha256_hex(content)});
    end = offset + content.size();
  }
  text = manifest_text(manifest);
  TRY(add_entry(archive.get(), kManifestEntry, text.data(), text.size(), end));
  if (zip_set_archive_comment(archive.get(), comment.data(),
                              static_cast<zip_uint16_t>(comment.size())) != 0)
    return zip_failure(archive.get());
  if (zip_close(archive.get()) != 0) return zip_failure(archive.get());
  archive.release();
  return {};
}

// SHA-256 of what is neither an entry's data nor the seal itself.
std::string seal_of(std::string_view file, const Manifest& manifest) {
  Sha256 hash;
  size_t begin = 0;
  for (const ManifestEntry& entry : manifest.entries) {
    hash.update(file.data() + begin, entry.offset - begin);
    begin = entry.offset + entry.bytes;
  }
  hash.update(file.data() + begin, file.size() - kHashDigits - begin);
  return hash.hex();
}

// What a signature covers: all in front of it. Empty where the file has none.
std::string_view signed_part(std::string_view file) {
  constexpr size_t kAfter = kSignatureDigits + kHashDigits;
  if (file.size() < kSigned.size() + kAfter) return {};
  const std::string_view part = file.substr(0, file.size() - kAfter);
  return part.ends_with(kSigned) ? part : std::string_view();
}

// Writes the signature, where there is a place for it, and the seal.
void seal_text(char* data, size_t bytes, const Manifest& manifest, const SigningKey* key) {
  const std::string_view file(data, bytes);
  if (key != nullptr) {
    const std::string_view part = signed_part(file);
    const std::string signature = key->sign(part);
    std::memcpy(data + part.size(), signature.data(), signature.size());
  }
  const std::string seal = seal_of(file, manifest);
  std::memcpy(data + bytes - seal.size(), seal.data(), seal.size());
}

Status seal_file(const std::filesystem::path& path, const Manifest& manifest,
                 const SigningKey* key) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat info {};
  const bool is_open = fd >= 0 && ::fstat(fd, &info) == 0;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* memory =
      is_open ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (memory == MAP_FAILED) return internal_error("{}", std::strerror(code));
  seal_text(static_cast<char*>(memory), bytes, manifest, key);
  ::munmap(memory, bytes);
  return {};
}

// The text of the manifest: the seal covers it.
Result<std::string> read_manifest_entry(zip_t* archive) {
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  const zip_int64_t index = zip_name_locate(archive, kManifestEntry, 0);
  if (index < 0 || index + 1 != count) return bad_model("no manifest: this is no artifact");
  zip_stat_t stat;
  if (zip_stat_index(archive, static_cast<zip_uint64_t>(index), 0, &stat) != 0 ||
      (stat.valid & ZIP_STAT_SIZE) == 0 || stat.size > kMostManifest ||
      (stat.valid & ZIP_STAT_COMP_METHOD) == 0 || stat.comp_method != ZIP_CM_STORE)
    return bad_model("a manifest that is compressed or too large");
  std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(
      zip_fopen_index(archive, static_cast<zip_uint64_t>(index), 0), zip_fclose);
  std::string text(stat.size, '\0');
  const zip_int64_t read = file == nullptr ? -1 : zip_fread(file.get(), text.data(), text.size());
  if (read != static_cast<zip_int64_t>(stat.size)) return bad_model("the manifest is damaged");
  return text;
}

Status check_entries(zip_t* archive, const Manifest& manifest) {
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count != static_cast<zip_int64_t>(manifest.entries.size()) + 1)
    return bad_model("{} entries, the manifest names {}", count, manifest.entries.size() + 1);
  for (size_t i = 0; i < manifest.entries.size(); ++i) {
    const ManifestEntry& entry = manifest.entries[i];
    zip_stat_t stat;
    if (zip_stat_index(archive, i, 0, &stat) != 0 || entry.name != stat.name ||
        stat.size != entry.bytes || stat.comp_size != entry.bytes ||
        stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE)
      return bad_model("entry '{}' is not as the manifest says", printable(entry.name));
  }
  return {};
}

}  // namespace

Status write_zip(const std::filesystem::path& path, const std::vector<ZipEntry>& entries,
                 Manifest manifest, const SigningKey* key) {
  std::string text;  // libzip reads it when the archive is closed
  std::string comment(kHashDigits, '0');
  if (key != nullptr) comment = std::string(kSigned) + std::string(kSignatureDigits, '0') + comment;
  manifest.entries.clear();
  TRY(write_archive(path, entries, manifest, text, comment));
  return seal_file(path, manifest, key);
}

Status check_signature(std::string_view file, const PublicKey& key) {
  const std::string_view part = signed_part(file);
  if (part.empty()) return bad_model("it is not signed, and a signature is required");
  if (!key.has_signed(part, file.substr(part.size(), kSignatureDigits)))
    return bad_model("its signature is not that of the key that is required, or it was changed");
  return {};
}

Result<Manifest> read_zip(std::string_view file) {
  if (file.size() < kHashDigits)
    return bad_model("this is no artifact: it has {} bytes", file.size());
  zip_error_t failure;
  zip_error_init(&failure);
  const auto refuse = [&] {
    Status status = bad_model("this is no artifact, or damaged: {}", zip_error_strerror(&failure));
    zip_error_fini(&failure);
    return status;
  };
  zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, &failure);
  if (source == nullptr) return refuse();
  Archive archive(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &failure), zip_discard);
  if (archive == nullptr) {
    zip_source_free(source);
    return refuse();
  }
  zip_error_fini(&failure);
  const Manifest manifest =
      TRY(parse_manifest(TRY(read_manifest_entry(archive.get())), file.size() - kHashDigits));
  TRY(check_entries(archive.get(), manifest));
  if (seal_of(file, manifest) != file.substr(file.size() - kHashDigits))
    return bad_model("damaged: its headers do not fit their hash");
  return manifest;
}

}  // namespace collage
