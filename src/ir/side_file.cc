#include "ir/side_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/output_file.h"

namespace collage {

namespace {

using nlohmann::json;
constexpr std::string_view kMagic = "CLGTENS1";
constexpr uint64_t kMaxHeader = uint64_t{1} << 28;

uint64_t align(uint64_t offset) { return (offset + 63) / 64 * 64; }

struct File {
  explicit File(int fd) : fd(fd) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd;
};

bool read_all(int fd, void* data, size_t bytes, uint64_t offset) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    ssize_t n = ::pread(fd, next, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    next += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

std::string tensor_hash(const Tensor& tensor) {
  Sha256 hash;
  hash.update(tensor.raw(), tensor.bytes());
  return hash.hex();
}

// Offsets are from the start of the data, which begins at the first multiple of 64 after the
// header.
std::string header_text(std::span<const Tensor> tensors) {
  json list = json::array();
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    list.push_back({{"dtype", dtype_name(tensor.dtype())},
                    {"shape", tensor.shape()},
                    {"offset", offset},
                    {"sha256", tensor_hash(tensor)}});
    offset = align(offset + tensor.bytes());
  }
  return json{{"tensors", list}}.dump();
}

Result<Tensor> read_tensor(int fd, const json& entry, uint64_t data_start, uint64_t file_size) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("offset") ||
      !entry["offset"].is_number_unsigned() || !entry.contains("sha256") ||
      !entry["sha256"].is_string())
    return bad_model("malformed header");
  DType dtype = TRY(parse_dtype(entry["dtype"].get<std::string>()));
  Shape shape;
  for (const json& extent : entry["shape"]) {
    if (!extent.is_number_integer()) return bad_model("malformed shape");
    shape.push_back(extent.get<int64_t>());
  }
  uint64_t bytes = static_cast<uint64_t>(TRY(checked_num_elements(shape)));
  uint64_t offset = entry["offset"].get<uint64_t>(), available = file_size - data_start;
  if (offset > available || bytes > (available - offset) / dtype_size(dtype))
    return bad_model("a tensor of shape {} lies beyond the end of the file",
                     shape_to_string(shape));
  Tensor tensor = TRY(Tensor::allocate(dtype, shape));
  if (!read_all(fd, tensor.raw(), tensor.bytes(), data_start + offset))
    return bad_model("read failed");
  if (tensor_hash(tensor) != entry["sha256"].get<std::string>())
    return bad_model("a tensor of shape {} does not fit its checksum", shape_to_string(shape));
  return tensor;
}

}  // namespace

Status write_side_file(const std::filesystem::path& path, std::span<const Tensor> tensors) {
  std::string header = header_text(tensors);
  uint64_t length = header.size();
  std::string start(kMagic);
  start.append(reinterpret_cast<const char*>(&length), sizeof length);
  start += header;
  start.resize(align(start.size()));
  OutputFile file = TRY(OutputFile::create(path));
  bool ok = write_all(file.descriptor(), start.data(), start.size());
  static constexpr char kPadding[64] = {};
  for (const Tensor& tensor : tensors) {
    ok = ok && write_all(file.descriptor(), tensor.raw(), tensor.bytes());
    ok = ok && write_all(file.descriptor(), kPadding, align(tensor.bytes()) - tensor.bytes());
  }
  if (!ok) return internal_error("{}: {}", path.string(), std::strerror(errno));
  return file.publish();
}

Result<std::vector<Tensor>> read_side_file(const std::filesystem::path& path) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0)
    return bad_model("{}: {}", path.string(), std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return bad_model("{}: not a regular file", path.string());
  uint64_t size = static_cast<uint64_t>(info.st_size), length = 0;
  char magic[8];
  if (size < 16 || !read_all(file.fd, magic, 8, 0) || std::string_view(magic, 8) != kMagic ||
      !read_all(file.fd, &length, 8, 8) || length > kMaxHeader || length > size - 16)
    return bad_model("{}: not a tensor file, or truncated", path.string());
  std::string header(length, '\0');
  if (!read_all(file.fd, header.data(), length, 16))
    return bad_model("{}: read failed", path.string());
  json parsed = parse_json(header);
  if (!parsed.is_object() || !parsed.contains("tensors") || !parsed["tensors"].is_array())
    return bad_model("{}: malformed header", path.string());
  uint64_t data_start = std::min(align(16 + length), size);
  std::vector<Tensor> tensors;
  for (const json& entry : parsed["tensors"]) {
    Result<Tensor> tensor = read_tensor(file.fd, entry, data_start, size);
    if (!tensor) return std::move(tensor).status().with_context(path.string());
    tensors.push_back(*tensor);
  }
  return tensors;
}

}  // namespace collage
