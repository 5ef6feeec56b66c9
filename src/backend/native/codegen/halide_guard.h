// Halide's exceptions as a status: no exception leaves a backend's folder.
#pragma once

#include <Halide.h>

#include <string_view>

#include "base/result.h"

namespace collage::native {

/// What `body` gives, a Result or a Status. `backend`: for messages.
template <typename F>
auto guarded(std::string_view backend, F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Halide::Error& failure) {
    return internal_error("{}: Halide: {}", backend, failure.what());
  } catch (const std::exception& failure) {
    return internal_error("{}: {}", backend, failure.what());
  }
}

}  // namespace collage::native
