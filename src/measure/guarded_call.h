// Calls into backends inside a worker.
#pragma once

#include <exception>
#include <new>
#include <system_error>

#include "base/result.h"
#include "measure/measure.h"

namespace collage {

// Turns an exception, which backends promise not to throw, into a refusal. A backend that ran out
// of memory may still hold all of it: the worker is given up.
template <typename F>
auto guarded(const MeasureHooks& hooks, F&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    hooks.give_up("out of memory (bad_alloc)");
    return internal_error("out of memory (bad_alloc)");
  } catch (const std::system_error& failure) {  // no thread, as a rule
    return error(ErrorCode::kUnavailable, "{}", failure.what());
  } catch (const std::exception& exception) {
    return internal_error("threw an exception: {}", exception.what());
  } catch (...) {
    return internal_error("threw an exception");
  }
}

}  // namespace collage
