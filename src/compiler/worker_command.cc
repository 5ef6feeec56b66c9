#include "compiler/worker_command.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "backend/targets/plugins.h"

namespace collage {

namespace fs = std::filesystem;

namespace {

bool is_program(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::vector<std::string>> worker_command(const fs::path& given) {
  auto command = [](const fs::path& program) {
    std::vector<std::string> words = {program.string(), "worker"};
    for (const std::string& plugin : loaded_plugins()) {
      words.push_back("--plugin");
      words.push_back(plugin);
    }
    return words;
  };
  if (!given.empty()) {
    if (!is_program(given))
      return usage_error("worker program {}: not an executable file", given.string());
    return command(given);
  }
  if (const char* named = std::getenv("COLLAGE_WORKER"); named != nullptr && *named != '\0')
    return worker_command(named);
  std::error_code ec;
  fs::path self = fs::read_symlink("/proc/self/exe", ec);
  if (!ec && self.filename() == "collage") return command(self);
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&worker_command), &info) != 0 &&
      info.dli_fname != nullptr) {
    fs::path folder = fs::absolute(info.dli_fname, ec).parent_path();
    for (const fs::path& program : {folder / "collage", folder.parent_path() / "bin" / "collage"})
      if (is_program(program)) return command(program);
  }
  if (const char* path = std::getenv("PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');)
      if (is_program(fs::path(folder) / "collage")) return command(fs::path(folder) / "collage");
  }
  return error(ErrorCode::kUnavailable,
               "the `collage` command, which measures candidates, was not found: put it on PATH or "
               "set COLLAGE_WORKER");
}

}  // namespace collage
