// Errors as values: a Status is success or an error with a code, a message and the chain of places
// it passed through; a Result<T> is a value or such a Status. Every failure that input, a backend
// or the hardware can cause is reported this way; the library never throws and never aborts on it.
//
//   collage::Result<collage::Program> program = collage::compile(model, options);
//   if (!program) { std::cerr << program.status().to_string() << "\n"; return
//   program.status().exit_code(); }
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage {

// What kind of failure; the value is also the exit status of the `collage` command.
enum class ErrorCode {
  kOk = 0,
  kInternal = 1,      // a bug of ours, or a resource (disk, memory) that failed
  kUsage = 2,         // a wrong flag or argument
  kBadModel = 3,      // a malformed model, or inputs whose shape or dtype do not fit it
  kUnsupported = 4,   // a well-formed model that uses something not implemented
  kUnavailable = 5,   // a target or device this machine or build lacks
  kVerification = 6,  // results differ from the reference beyond tolerance
  kRegression = 7,    // a comparison found a regression beyond noise
  kFrozenCosts = 8,   // --frozen-costs and a measurement is missing
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(ErrorCode code, std::string message)
      : error_(std::make_unique<Error>(Error{code, std::move(message), {}})) {}
  Status(const Status& other)
      : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) {
    if (this != &other) error_ = other.error_ ? std::make_unique<Error>(*other.error_) : nullptr;
    return *this;
  }
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  ErrorCode code() const { return error_ ? error_->code : ErrorCode::kOk; }
  int exit_code() const { return static_cast<int>(code()); }
  // The message without its context; empty on success.
  const std::string& message() const {
    static const std::string kEmpty;
    return error_ ? error_->message : kEmpty;
  }
  // One line: outermost context first, then the message. "model.onnx: node 'conv1' (Conv): negative
  // stride -2".
  std::string to_string() const {
    if (!error_) return "ok";
    std::string text;
    for (auto it = error_->context.rbegin(); it != error_->context.rend(); ++it) text += *it + ": ";
    return text + error_->message;
  }
  // Adds where the error passed through (a file, a node); a no-op on success.
  Status&& with_context(std::string where) && {
    if (error_) error_->context.push_back(std::move(where));
    return std::move(*this);
  }

 private:
  struct Error {
    ErrorCode code;
    std::string message;
    std::vector<std::string> context;  // innermost first
  };
  std::unique_ptr<Error> error_;  // null on success: a Status costs one pointer
};

// A value of type T, or the Status that says why there is none. Reading the value of a failed
// Result aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status)
      : status_(std::move(status)) {}  // NOLINT: implicit on purpose; must be an error
  template <typename U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Status> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result>) Result(U&& value)
      : value_(std::in_place, std::forward<U>(value)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const& { return status_; }
  Status&& status() && { return std::move(status_); }
  T& value() & { return require(), *value_; }
  const T& value() const& { return require(), *value_; }
  T&& value() && { return require(), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return require(), &*value_; }
  const T* operator->() const { return require(), &*value_; }
  Result&& with_context(std::string where) && {
    if (!ok()) status_ = std::move(status_).with_context(std::move(where));
    return std::move(*this);
  }

 private:
  void require() const {
    if (!value_) std::abort();
  }
  std::optional<T> value_;
  Status status_;
};

}  // namespace collage
