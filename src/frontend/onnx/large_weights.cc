#include "frontend/onnx/large_weights.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/onnx-ml.pb.h>

#include <limits>

#include "runtime/shared_constants.h"

namespace collage::frontend {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using ::onnx::TensorProto;

constexpr uint32_t tag_of(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Copies the fields of a message up to the stream's end or limit. `special` reads a field of that
// tag itself. False: it is not well formed.
template <typename Special>
bool copy_fields(CodedInputStream& in, uint32_t special_tag, std::string& to, Special&& special) {
  StringOutputStream stream(&to);
  CodedOutputStream out(&stream);
  // A message with that much else is read whole: copies of it would be held beside one another.
  constexpr size_t kMostCopied = 64 << 20;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag == special_tag ? !special(out) : !WireFormatLite::SkipField(&in, tag, &out))
      return false;
    if (to.size() > kMostCopied) return false;
  }
  return in.ConsumedEntireMessage();
}

// A message within another one: `copy` makes the one that takes its place.
template <typename Copy>
bool copy_message(CodedInputStream& in, uint32_t tag, CodedOutputStream& out, Copy&& copy) {
  uint32_t length = 0;
  if (!in.ReadVarint32(&length) || length > std::numeric_limits<int32_t>::max()) return false;
  const int left = in.BytesUntilLimit();  // -1: there is none
  if (left >= 0 && length > static_cast<uint32_t>(left)) return false;
  const CodedInputStream::Limit outer = in.PushLimit(static_cast<int>(length));
  std::string copied;
  if (!copy(copied) || in.BytesUntilLimit() != 0) return false;
  in.PopLimit(outer);
  out.WriteTag(tag);
  out.WriteVarint32(static_cast<uint32_t>(copied.size()));
  out.WriteString(copied);
  return true;
}

bool copy_tensor(CodedInputStream& in, std::string& to) {
  int64_t offset = 0, length = 0;  // of large raw data
  const auto skip_raw_data = [&](CodedOutputStream& out) {
    uint32_t bytes = 0;
    if (!in.ReadVarint32(&bytes) || bytes > std::numeric_limits<int32_t>::max()) return false;
    if (bytes >= kLeastSharedBytes) {
      offset = in.CurrentPosition();
      length = bytes;
      return in.Skip(static_cast<int>(bytes));
    }
    std::string small;
    out.WriteTag(tag_of(TensorProto::kRawDataFieldNumber));
    out.WriteVarint32(bytes);
    if (!in.ReadString(&small, static_cast<int>(bytes))) return false;
    out.WriteString(small);
    return true;
  };
  if (!copy_fields(in, tag_of(TensorProto::kRawDataFieldNumber), to, skip_raw_data)) return false;
  if (length == 0) return true;
  TensorProto tensor;
  if (!tensor.ParseFromString(to) || tensor.has_data_location() || tensor.has_raw_data() ||
      tensor.external_data_size() > 0)
    return false;
  const auto describe = [&](const char* key, std::string value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(std::move(value));
  };
  describe("location", kOwnFile);
  describe("offset", std::to_string(offset));
  describe("length", std::to_string(length));
  tensor.set_data_location(TensorProto::EXTERNAL);
  return tensor.SerializeToString(&to);
}

}  // namespace

std::optional<std::string> without_large_weights(google::protobuf::io::ZeroCopyInputStream& file) {
  constexpr uint32_t kGraph = tag_of(::onnx::ModelProto::kGraphFieldNumber);
  constexpr uint32_t kInitializer = tag_of(::onnx::GraphProto::kInitializerFieldNumber);
  CodedInputStream in(&file);
  in.SetTotalBytesLimit(std::numeric_limits<int32_t>::max());
  std::string model;
  const auto copy_initializer = [&](CodedOutputStream& graph) {
    return copy_message(in, kInitializer, graph,
                        [&](std::string& tensor) { return copy_tensor(in, tensor); });
  };
  const auto copy_graph = [&](CodedOutputStream& out) {
    return copy_message(in, kGraph, out, [&](std::string& graph) {
      return copy_fields(in, kInitializer, graph, copy_initializer);
    });
  };
  return copy_fields(in, kGraph, model, copy_graph) ? std::optional(std::move(model))
                                                    : std::nullopt;
}

}  // namespace collage::frontend
