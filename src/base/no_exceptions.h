// The last line of defence: an exception that nobody expected becomes a Status. What is known to
// throw is caught where it is called; this stands at the edge of the library, whose callers are
// promised that nothing throws, and around what backends run.
#pragma once

#include <exception>
#include <new>

#include "base/result.h"

namespace collage {

// What `body` gives, a Result or a Status; kInternal where it throws.
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
