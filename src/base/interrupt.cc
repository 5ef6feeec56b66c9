#include "base/interrupt.h"

#include <collage/progress.h>
#include <signal.h>

#include <atomic>

namespace collage {

namespace {
// Set by the handler, read by every thread that compiles.
std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void set_action(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}
}  // namespace

InterruptScope::InterruptScope() {
  // The handler removes itself: the next signal kills.
  set_action([](int) { flag.store(true, std::memory_order_relaxed); },
             static_cast<int>(SA_RESETHAND));
}
InterruptScope::~InterruptScope() { set_action(SIG_DFL, 0); }

void set_interrupted(bool interrupted) { flag.store(interrupted, std::memory_order_relaxed); }
bool interrupted() { return flag.load(std::memory_order_relaxed); }

}  // namespace collage
