#include "frontend/onnx/model_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/large_weights.h"
#include "frontend/onnx/limits.h"

namespace collage::frontend {

namespace {

struct FileDescriptor {
  int fd = -1;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Oldest first. The newest that the format's description (of the onnx wheel) defines.
constexpr int64_t kMinOpset = 1;
constexpr int64_t kMaxOpset = 28;
constexpr int64_t kMinIrVersion = 1;

Status check_name(const std::string& name, const char* what) {
  if (name.size() > kMaxNameLength)
    return bad_model("the name of {} has {} bytes, the limit is {}", what, name.size(),
                     kMaxNameLength);
  return {};
}

Status check_attribute(const ::onnx::AttributeProto& attribute) {
  auto check = [&](size_t length) -> Status {
    if (length > kMaxAttributeLength)
      return bad_model("attribute '{}' has {} elements, the limit is {}", attribute.name(), length,
                       kMaxAttributeLength);
    return {};
  };
  TRY(check(attribute.s().size()));
  TRY(check(static_cast<size_t>(attribute.ints_size())));
  TRY(check(static_cast<size_t>(attribute.floats_size())));
  TRY(check(static_cast<size_t>(attribute.strings_size())));
  TRY(check(static_cast<size_t>(attribute.tensors_size())));
  TRY(check(static_cast<size_t>(attribute.graphs_size())));
  return {};
}

// Counts nodes and checks names and attributes in `graph` and in all graphs nested in it.
Status check_structure(const ::onnx::ModelProto& model) {
  struct Item {
    const google::protobuf::RepeatedPtrField<::onnx::NodeProto>* nodes;
    int depth;
  };
  std::vector<Item> todo = {{&model.graph().node(), 0}};
  for (const auto& function : model.functions()) todo.push_back({&function.node(), 0});
  size_t count = 0;
  while (!todo.empty()) {
    Item item = todo.back();
    todo.pop_back();
    if (item.depth > kMaxGraphDepth)
      return bad_model("graphs are nested more than {} deep", kMaxGraphDepth);
    count += static_cast<size_t>(item.nodes->size());
    if (count > kMaxNodes) return bad_model("more than {} nodes", kMaxNodes);
    for (const auto& node : *item.nodes) {
      TRY(check_name(node.name(), "a node"));
      TRY(check_name(node.op_type(), "an operator"));
      for (const auto& name : node.input()) TRY(check_name(name, "a value"));
      for (const auto& name : node.output()) TRY(check_name(name, "a value"));
      if (node.attribute_size() > kMaxAttributes)
        return bad_model("node '{}' has {} attributes, the limit is {}", node.name(),
                         node.attribute_size(), kMaxAttributes);
      for (const auto& attribute : node.attribute()) {
        Status status = check_attribute(attribute);
        if (!status.ok())
          return std::move(status).with_context(
              fmt::format("node '{}' ({})", node.name(), node.op_type()));
        if (attribute.has_g()) todo.push_back({&attribute.g().node(), item.depth + 1});
        for (const auto& graph : attribute.graphs())
          todo.push_back({&graph.node(), item.depth + 1});
      }
    }
  }
  return {};
}

Result<std::unique_ptr<::onnx::ModelProto>> parse(google::protobuf::io::ZeroCopyInputStream& stream,
                                                  int64_t bytes) {
  if (bytes == 0) return bad_model("is empty");
  if (bytes > std::numeric_limits<int32_t>::max())
    return bad_model(
        "has {} bytes; the ONNX format ends at 2 GB (larger weights go in external data)", bytes);
  auto model = std::make_unique<::onnx::ModelProto>();
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int32_t>::max());
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return bad_model(
        "is not an ONNX model, or is truncated ({} bytes do not parse as its protobuf)", bytes);
  if (!model->has_graph()) return bad_model("is not an ONNX model: it has no graph");
  if (model->ir_version() < kMinIrVersion)
    return bad_model("IR version {} does not exist", model->ir_version());
  TRY(check_structure(*model));
  return model;
}

}  // namespace

Result<int64_t> standard_opset(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) {
  int64_t opset = 0;
  for (const auto& entry : imports) {
    if (!is_standard_domain(entry.domain())) continue;
    if (opset != 0 && opset != entry.version())
      return bad_model("the standard operators are imported twice, in versions {} and {}", opset,
                       entry.version());
    opset = entry.version();
    if (opset < kMinOpset) return bad_model("operator set {} does not exist", opset);
    if (opset > kMaxOpset)
      return unsupported("operator set {}; the newest supported is {}", opset, kMaxOpset);
  }
  return opset;
}

Result<std::unique_ptr<::onnx::ModelProto>> read_model_file(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer; it has no effect on regular files.
  FileDescriptor input{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (input.fd < 0) return bad_model("cannot open: {}", std::strerror(errno));
  struct stat info = {};
  if (::fstat(input.fd, &info) != 0) return bad_model("cannot stat: {}", std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return bad_model("is a folder, not a model");
  if (!S_ISREG(info.st_mode)) return bad_model("is not a regular file");
  constexpr int kBlock = 1 << 20;
  {
    google::protobuf::io::FileInputStream stream(input.fd, kBlock);
    const std::optional<std::string> light = without_large_weights(stream);
    if (light)
      if (auto model = parse_model(*light)) return model;
  }
  // What is wrong with it is told of the whole file.
  if (::lseek(input.fd, 0, SEEK_SET) != 0) return bad_model("{}", std::strerror(errno));
  google::protobuf::io::FileInputStream stream(input.fd, kBlock);
  return parse(stream, info.st_size);
}

Result<std::unique_ptr<::onnx::ModelProto>> parse_model(std::string_view content) {
  const auto bytes = static_cast<int64_t>(content.size());
  const auto within = std::min<int64_t>(bytes, std::numeric_limits<int32_t>::max());
  google::protobuf::io::ArrayInputStream stream(content.data(), static_cast<int>(within));
  return parse(stream, bytes);
}

}  // namespace collage::frontend
