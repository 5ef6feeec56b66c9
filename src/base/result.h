// Status and Result (public, in collage/result.h), the TRY macro, and shorthands to make errors
// with a formatted message.
//
//   Result<int> f() { int x = TRY(g()); TRY(check(x)); return x + 1; }
#pragma once

#include <collage/result.h>
#include <fmt/format.h>

#include <utility>

namespace collage {

namespace internal {
inline Status take_status(Status&& status) { return std::move(status); }
inline Status take_status(const Status& status) { return status; }
template <typename T>
Status take_status(Result<T>&& result) {
  return std::move(result).status();
}
template <typename T>
Status take_status(Result<T>& result) {
  return result.status();
}
inline void take_value(Status&&) {}
inline void take_value(const Status&) {}
template <typename T>
T take_value(Result<T>&& result) {
  return std::move(result).value();
}
}  // namespace internal

// Evaluates to the value of a Result (nothing for a Status), or returns its error from the
// enclosing function.
#define TRY(...)                                                                              \
  ({                                                                                          \
    auto collage_try_ = (__VA_ARGS__);                                                        \
    if (!collage_try_.ok()) return ::collage::internal::take_status(std::move(collage_try_)); \
    ::collage::internal::take_value(std::move(collage_try_));                                 \
  })

template <typename... Args>
Status error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status internal_error(fmt::format_string<Args...> format, Args&&... args) {
  return error(ErrorCode::kInternal, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status usage_error(fmt::format_string<Args...> format, Args&&... args) {
  return error(ErrorCode::kUsage, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status bad_model(fmt::format_string<Args...> format, Args&&... args) {
  return error(ErrorCode::kBadModel, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return error(ErrorCode::kUnsupported, format, std::forward<Args>(args)...);
}

}  // namespace collage
