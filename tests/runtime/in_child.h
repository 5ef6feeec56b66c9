// What a child process (fork) of the test does.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace collage::testing {

// The status that `body` gives there; negative where the child was ended by a signal, that of its
// alarm if it hangs.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace collage::testing
