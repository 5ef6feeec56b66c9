#include "backend/native/linker.h"

#include <string>

#include "base/files.h"
#include "base/tools.h"
#include "kernels/native/kernel_object.h"

namespace collage::native {
namespace {

namespace fs = std::filesystem;

constexpr char kAssembler[] = "as", kLinker[] = "ld";

/// Assembly that defines every hook as a jump through the table, for its own library alone, and
/// keeps the object file in the library, where nothing loads it (kernel_object.h).
std::string hook_stubs(const std::string& object, const std::vector<Hook>& hooks) {
  std::string text = ".text\n";
  size_t offset = 0;
  for (const Hook& hook : hooks) {
    text +=
        fmt::format(".globl {0}\n.hidden {0}\n.type {0}, @function\n{0}: jmp *.Ltable+{1}(%rip)\n",
                    hook.name, offset);
    offset += sizeof(void*);
  }
  return text + fmt::format(
                    ".bss\n.p2align 3\n.globl {0}\n.type {0}, @object\n.size {0}, {1}\n"
                    "{0}:\n.Ltable: .zero {1}\n"
                    ".section {2}, \"\", @progbits\n.incbin \"{3}\"\n"
                    ".section .note.GNU-stack, \"\", @progbits\n",
                    kHookTable, offset, kObjectSection, object);
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
  // What the assembly includes lies beside it.
  return run_tool({kAssembler, "-I", assembly.parent_path().string(), "-o", object.string(),
                   assembly.string()})
      .with_context("native: a kernel");
}

Status link_kernel(const fs::path& object, const fs::path& library,
                   const std::vector<Hook>& hooks) {
  const fs::path stubs = library.parent_path() / "hooks.s",
                 jumps = library.parent_path() / "hooks.o";
  TRY(write_file_atomically(stubs, hook_stubs(object.filename().string(), hooks)));
  TRY(assemble(stubs, jumps));
  return run_tool({kLinker, "-shared", "-o", library.string(), object.string(), jumps.string()})
      .with_context("native: a kernel");
}

}  // namespace collage::native
