#include "runtime/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files.h"

namespace collage {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeCode {
  std::string_view code;
  DType dtype;
};
constexpr TypeCode kTypes[] = {
    {"<f4", DType::kFloat32}, {"<f8", DType::kFloat64}, {"<f2", DType::kFloat16},
    {"|i1", DType::kInt8},    {"<i2", DType::kInt16},   {"<i4", DType::kInt32},
    {"<i8", DType::kInt64},   {"|u1", DType::kUInt8},   {"<u2", DType::kUInt16},
    {"<u4", DType::kUInt32},  {"<u8", DType::kUInt64},  {"|b1", DType::kBool}};

// What follows 'key': in the header, a Python dictionary written by NumPy.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view value = header.substr(at + quoted.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

// The text between the brackets that `value` starts with.
std::optional<std::string> enclosed(std::optional<std::string_view> value, char open, char close) {
  if (!value || !value->starts_with(open)) return std::nullopt;
  const size_t end = value->find(close, 1);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(value->substr(1, end - 1));
}

}  // namespace

Result<Tensor> read_npy(const std::filesystem::path& path) {
  std::string bytes = TRY(read_file(path));
  auto bad = [&](const std::string& what) {
    return bad_model("{}: not a usable .npy file: {}", path.string(), what);
  };
  if (bytes.size() < 12 || !bytes.starts_with(kMagic)) return bad("no NPY header");
  size_t length_size = bytes[6] == 1 ? 2 : 4, header_size = 0;
  for (size_t i = 0; i < length_size; ++i)
    header_size |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  size_t data = 8 + length_size + header_size;
  if (data > bytes.size()) return bad("truncated header");
  std::string header = bytes.substr(8 + length_size, header_size);
  const auto code = enclosed(value_of(header, "descr"), '\'', '\'');
  if (!code) return bad("no 'descr'");
  DType dtype{};
  bool known = false;
  for (const TypeCode& type : kTypes)
    if (type.code == *code) {
      dtype = type.dtype;
      known = true;
    }
  if (!known) return bad(fmt::format("element type '{}'", *code));
  const auto fortran = value_of(header, "fortran_order");
  if (fortran && fortran->starts_with("True")) return bad("Fortran order");
  const auto extents = enclosed(value_of(header, "shape"), '(', ')');
  if (!extents || extents->find_first_not_of("0123456789, ") != std::string::npos)
    return bad("no 'shape'");
  Shape shape;
  const std::string& list = *extents;
  for (size_t i = 0; i < list.size();) {
    if (!std::isdigit(static_cast<unsigned char>(list[i]))) {
      ++i;
      continue;
    }
    int64_t extent = 0;
    for (; i < list.size() && std::isdigit(static_cast<unsigned char>(list[i])); ++i)
      if (extent < int64_t{1} << 40) extent = extent * 10 + (list[i] - '0');
    shape.push_back(extent);
  }
  int64_t count = TRY(checked_num_elements(shape));
  if (static_cast<uint64_t>(count) != (bytes.size() - data) / dtype_size(dtype))
    return bad(fmt::format("shape {} does not fit the data", shape_to_string(shape)));
  Tensor tensor = TRY(Tensor::allocate(dtype, std::move(shape)));
  std::memcpy(tensor.raw(), bytes.data() + data, tensor.bytes());
  return tensor;
}

Status write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  Tensor stored = tensor;
  if (tensor.dtype() == DType::kBFloat16) {
    stored = TRY(Tensor::allocate(DType::kFloat32, tensor.shape()));
    for (int64_t i = 0; i < tensor.size(); ++i)
      stored.data<float>()[i] = static_cast<float>(tensor.element_as_double(i));
  }
  std::string_view code;
  for (const TypeCode& type : kTypes)
    if (type.dtype == stored.dtype()) code = type.code;
  std::string extents;
  for (int64_t extent : stored.shape()) extents += std::to_string(extent) + ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code, extents);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 255),
            static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(static_cast<const char*>(stored.raw()), stored.bytes());
  return write_file_atomically(path, bytes);
}

}  // namespace collage
