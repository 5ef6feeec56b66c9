#include "base/interrupt.h"

#include <signal.h>

namespace collage {

namespace {
volatile sig_atomic_t flag = 0;
}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { flag = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the next one kills
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace collage
