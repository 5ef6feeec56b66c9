#include "backend/native/linker.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "backend/native/runtime_hooks.h"
#include "base/files.h"

extern char** environ;

namespace collage::native {
namespace {

namespace fs = std::filesystem;

constexpr char kAssembler[] = "as", kLinker[] = "ld";

bool is_on_path(const std::string& tool) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((fs::path(folder) / tool).c_str(), X_OK) == 0) return true;
  return false;
}

Status run_tool(std::vector<std::string> command) {
  std::vector<char*> args;
  for (std::string& word : command) args.push_back(word.data());
  args.push_back(nullptr);
  pid_t child = 0;
  if (const int failed = posix_spawnp(&child, args[0], nullptr, nullptr, args.data(), environ);
      failed != 0) {
    return internal_error("native: cannot start `{}`: {} (install binutils)", command[0],
                          std::strerror(failed));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return internal_error("native: waiting for `{}`: {}", command[0], std::strerror(errno));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return internal_error("native: `{}` failed on a kernel", command[0]);
  return {};
}

/// The symbol of the table through which a library calls the hooks.
constexpr char kHookTable[] = "collage_hooks";

/// Assembly that defines every hook as a jump through the table, for its own library alone.
std::string hook_stubs() {
  std::string text = ".text\n";
  size_t offset = 0;
  for (const Hook& hook : runtime_hooks()) {
    text +=
        fmt::format(".globl {0}\n.hidden {0}\n.type {0}, @function\n{0}: jmp *.Ltable+{1}(%rip)\n",
                    hook.name, offset);
    offset += sizeof(void*);
  }
  return text + fmt::format(
                    ".bss\n.p2align 3\n.globl {0}\n.type {0}, @object\n.size {0}, {1}\n"
                    "{0}:\n.Ltable: .zero {1}\n.section .note.GNU-stack, \"\", @progbits\n",
                    kHookTable, offset);
}

}  // namespace

Status linking_available() {
  for (const char* tool : {kAssembler, kLinker})
    if (!is_on_path(tool))
      return error(ErrorCode::kUnavailable,
                   "its kernels need `{}`, which is not on PATH: install binutils", tool);
  return {};
}

Status assemble(const fs::path& assembly, const fs::path& object) {
  return run_tool({kAssembler, "-o", object.string(), assembly.string()});
}

Status link_kernel(const fs::path& object, const fs::path& library) {
  const fs::path stubs = library.parent_path() / "hooks.s",
                 hooks = library.parent_path() / "hooks.o";
  TRY(write_file_atomically(stubs, hook_stubs()));
  TRY(assemble(stubs, hooks));
  return run_tool({kLinker, "-shared", "-o", library.string(), object.string(), hooks.string()});
}

bool provide_hooks(void* library) {
  auto** table = static_cast<void**>(dlsym(library, kHookTable));
  if (table == nullptr) return false;
  for (const Hook& hook : runtime_hooks()) *table++ = hook.function;
  return true;
}

}  // namespace collage::native
