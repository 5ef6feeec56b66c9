// A value that each process has one of: a child (fork) begins with a new one. That of its parent
// stays untouched, since a thread that does not exist in the child may have held its locks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

namespace collage {

// Returns the number of forks between the first process and this one.
int process_generation();

template <typename T>
class OfProcess {
 public:
  using Make = std::function<std::unique_ptr<T>()>;
  explicit OfProcess(Make make = std::make_unique<T>) : make_(std::move(make)), one_(made()) {}
  ~OfProcess() { delete one_.load(); }
  OfProcess(const OfProcess&) = delete;
  OfProcess& operator=(const OfProcess&) = delete;

  T& get() {
    for (;;) {
      One* now = one_.load();
      if (now->generation == process_generation()) return *now->value;
      One* fresh = made();
      if (!one_.compare_exchange_strong(now, fresh)) delete fresh;
    }
  }

 private:
  struct One {
    std::unique_ptr<T> value;
    int generation;
  };
  One* made() const { return new One{make_(), process_generation()}; }

  const Make make_;
  std::atomic<One*> one_;
};

}  // namespace collage
