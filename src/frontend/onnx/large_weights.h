// Reads a model's message without its large weights, which may be most of it: the bytes of an
// initializer stay in the file and are read from there when the tensor is taken (tensor_data.h), as
// if they were external data.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <optional>
#include <string>

namespace collage::frontend {

// Stands for the model's own file among the locations of external data.
inline constexpr const char* kOwnFile = ".";

// Returns the message of a ModelProto in which large raw_data of the graph's initializers became
// external data of kOwnFile. None where the file, which is read from its begin on, is not such a
// message.
std::optional<std::string> without_large_weights(google::protobuf::io::ZeroCopyInputStream& file);

}  // namespace collage::frontend
