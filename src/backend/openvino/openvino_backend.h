// The openvino backend: a whole-sub-graph toolchain. It takes any sub-graph of operators it can
// translate, compiles it with OpenVINO's CPU plugin, which chooses fusions and layouts, and runs it
// over the caller's buffers without copying. Boundaries are plain row-major float32.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_openvino_backend();

}  // namespace collage
