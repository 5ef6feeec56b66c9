#include "base/interrupt.h"

#include <signal.h>

namespace collage {

namespace {
volatile sig_atomic_t flag = 0;

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
  set_action([](int) { flag = 1; }, static_cast<int>(SA_RESETHAND));
}
InterruptScope::~InterruptScope() { set_action(SIG_DFL, 0); }

bool interrupted() { return flag != 0; }

}  // namespace collage
