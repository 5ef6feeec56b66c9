// Converts an unexpected exception to a Status. Known exceptions are caught where they arise; this
// stands at the edge of the library, which promises its callers not to throw, and around code of
// backends.
#pragma once

#include <exception>
#include <new>

#include "base/result.h"

namespace collage {

// Returns what `body` returns, a Result or a Status; kInternal if it throws.
template <typename F>
auto without_exceptions(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kInternal, "out of memory");
  } catch (const std::exception& exception) {
    return internal_error("threw an exception: {}", exception.what());
  } catch (...) {
    return Status(ErrorCode::kInternal, "threw an exception");
  }
}

}  // namespace collage
