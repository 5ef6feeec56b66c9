#include "base/tools.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

extern char** environ;

namespace collage {

namespace {

namespace fs = std::filesystem;

// The first line that tells of an error, else the first.
std::string complaint_in(const std::string& text) {
  std::istringstream lines(text);
  std::string first, line;
  while (std::getline(lines, line)) {
    if (line.find("error") != std::string::npos || line.find("undefined") != std::string::npos)
      return line;
    if (first.empty()) first = line;
  }
  return first;
}

// The process's number, or why there is none.
Result<pid_t> start(std::vector<std::string>& command, const MemoryFile& output,
                    const std::vector<const MemoryFile*>& files) {
  std::vector<char*> args;
  for (std::string& word : command) args.push_back(word.data());
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int standard : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_adddup2(&actions, output.descriptor(), standard);
  for (const MemoryFile* file : files)  // onto itself: it stays open
    posix_spawn_file_actions_adddup2(&actions, file->descriptor(), file->descriptor());
  pid_t child = 0;
  const int failed = posix_spawnp(&child, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return error(ErrorCode::kUnavailable, "cannot start `{}`: {}", args[0], std::strerror(failed));
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

Status run_tool(std::vector<std::string> command, const std::vector<const MemoryFile*>& files) {
  constexpr size_t kMostOutput = 1 << 16;
  const MemoryFile output = TRY(MemoryFile::create("collage-tool", kMostOutput));
  const pid_t child = TRY(start(command, output, files));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return internal_error("waiting for `{}`: {}", command[0], std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  // Nobody here kills it: the system does, where memory is used up.
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return error(ErrorCode::kUnavailable, "`{}` was killed", command[0]);
  const std::string said = complaint_in(TRY(output.content()));
  return internal_error("`{}` failed{}{}", command[0], said.empty() ? "" : ": ", said);
}

}  // namespace collage
