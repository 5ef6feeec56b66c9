#include "backend/native/codegen/linker.h"

#include <string>

#include "backend/native/kernels/kernel_object.h"
#include "base/tools.h"

namespace collage::native {
namespace {

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

Result<MemoryFile> kernel_file() {
  constexpr size_t kMostBytes = size_t{16} << 20;
  return MemoryFile::create("collage-kernel", kMostBytes).with_context("native: a kernel");
}

Status assemble(const MemoryFile& assembly, const MemoryFile& object) {
  return run_tool({kAssembler, "-o", object.path(), assembly.path()}, {&assembly, &object})
      .with_context("native: a kernel");
}

Result<std::string> link_kernel(const MemoryFile& object, const std::vector<Hook>& hooks) {
  const MemoryFile stubs = TRY(MemoryFile::of("collage-kernel", hook_stubs(object.path(), hooks))
                                   .with_context("native: a kernel"));
  const MemoryFile jumps = TRY(kernel_file()), library = TRY(kernel_file());
  // The stubs include the object.
  TRY(run_tool({kAssembler, "-o", jumps.path(), stubs.path()}, {&stubs, &jumps, &object})
          .with_context("native: a kernel"));
  TRY(run_tool({kLinker, "-shared", "-o", library.path(), object.path(), jumps.path()},
               {&object, &jumps, &library})
          .with_context("native: a kernel"));
  return library.content();
}

}  // namespace collage::native
