#include "base/tools.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

extern char** environ;

namespace collage {

namespace {

namespace fs = std::filesystem;

// Where a process's output goes: a file without a name.
class Output {
 public:
  Output() : file_(std::tmpfile()) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (file_ != nullptr) std::fclose(file_);
  }
  int descriptor() const { return file_ != nullptr ? ::fileno(file_) : -1; }

  // The first line that tells of an error, else the first.
  std::string complaint() {
    std::string text;
    if (file_ == nullptr) return text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    std::istringstream lines(text);
    std::string first, line;
    while (std::getline(lines, line)) {
      if (line.find("error") != std::string::npos || line.find("undefined") != std::string::npos)
        return line;
      if (first.empty()) first = line;
    }
    return first;
  }

 private:
  FILE* file_;
};

// The process's number, or why there is none (errno's codes).
Result<pid_t> start(std::vector<std::string>& command, int output) {
  std::vector<char*> args;
  for (std::string& word : command) args.push_back(word.data());
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output >= 0) {
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  }
  pid_t child = 0;
  const int failed = posix_spawnp(&child, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return internal_error("cannot start `{}`: {}", args[0], std::strerror(failed));
  return child;
}

}  // namespace

bool is_on_path(const std::string& tool) {
  if (tool.find('/') != std::string::npos) return ::access(tool.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((fs::path(folder) / tool).c_str(), X_OK) == 0) return true;
  return false;
}

Status run_tool(std::vector<std::string> command) {
  Output output;
  const pid_t child = TRY(start(command, output.descriptor()));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return internal_error("waiting for `{}`: {}", command[0], std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string said = output.complaint();
  return internal_error("`{}` failed{}{}", command[0], said.empty() ? "" : ": ", said);
}

}  // namespace collage
