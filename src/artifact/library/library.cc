#include "artifact/library/library.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "artifact/library/library_source.h"
#include "base/files.h"
#include "base/library_beside.h"
#include "base/output_file.h"
#include "base/scratch_folder.h"
#include "base/tools.h"

namespace collage {

namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

// The C compiler, perhaps with flags: $CC, else cc.
Words compiler() {
  const char* given = std::getenv("CC");
  std::istringstream text(given != nullptr ? given : "");
  Words words;
  for (std::string word; text >> word;) words.push_back(word);
  return words.empty() ? Words{"cc"} : words;
}

Status compile_c(Words flags) {
  Words command = compiler();
  command.insert(command.end(), flags.begin(), flags.end());
  return run_tool(std::move(command));
}

Status write_constants(const fs::path& path, const LibrarySource& source, const Plan& plan,
                       const PlanFacts& facts) {
  if (!source.needs_runtime.empty()) {
    TRY(write_artifact(path, plan, facts, {}));
    if (const size_t bytes = fs::file_size(path); bytes > kMostConstantBytes)
      return unsupported("a program of {} MB: a library holds no more than {} MB",
                         bytes / 1'000'000, kMostConstantBytes / 1'000'000);
    return {};
  }
  std::ofstream file(path, std::ios::binary);
  for (const auto& [offset, constant] : source.constants) {
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(constant.text().data(), static_cast<std::streamsize>(constant.bytes));
  }
  file.close();
  std::error_code code;
  if (file) fs::resize_file(path, source.constant_bytes, code);  // the rest are zeros
  if (!file || code) return internal_error("{}: {}", path.string(), std::strerror(errno));
  return {};
}

std::string constants_assembly() {
  return fmt::format(
      ".section .rodata\n.balign 64\n.globl {0}\n.hidden {0}\n.type {0}, @object\n"
      "{0}:\n.incbin \"constants\"\n.size {0}, .-{0}\n"
      ".globl {0}_end\n.hidden {0}_end\n{0}_end:\n"
      ".section .note.GNU-stack, \"\", @progbits\n",
      kLibraryConstants);
}

// One object file of all that the library holds, whose only symbols are those that the header
// declares: two libraries in a program do not meet.
Status make_object(const LibrarySource& source, const std::string& name, const fs::path& folder,
                   const Plan& plan, const PlanFacts& facts) {
  const auto in_folder = [&](const std::string& file) { return (folder / file).string(); };
  TRY(write_file_atomically(in_folder(name + ".h"), source.header));
  TRY(write_file_atomically(in_folder("library.c"), source.code));
  TRY(compile_c(
      {"-std=gnu11", "-O2", "-fPIC", "-c", "-o", in_folder("library.o"), in_folder("library.c")}));
  TRY(write_constants(folder / "constants", source, plan, facts));
  TRY(write_file_atomically(in_folder("constants.s"), constants_assembly()));
  TRY(run_tool(
      {"as", "-I", folder.string(), "-o", in_folder("constants.o"), in_folder("constants.s")}));
  Words link = {"ld",
                "-r",
                "-z",
                "noexecstack",
                "-o",
                in_folder("whole.o"),
                in_folder("library.o"),
                in_folder("constants.o")};
  for (const LibrarySource::Object& object : source.objects) {
    const std::string file = in_folder(object.entry + ".o");
    TRY(write_file_atomically(file, object.content));
    TRY(run_tool({"objcopy", "--redefine-sym", object.name_in_object + "=" + object.entry,
                  "--keep-global-symbol", object.entry, file}));
    link.push_back(file);
  }
  TRY(run_tool(std::move(link)));
  Words hide = {"objcopy"};
  for (const std::string& function : source.functions)
    hide.insert(hide.end(), {"--keep-global-symbol", function});
  hide.insert(hide.end(), {in_folder("whole.o"), in_folder(name + ".o")});
  return run_tool(std::move(hide));
}

Status publish(const fs::path& made, const fs::path& path) {
  OutputFile file = TRY(OutputFile::create(path));
  std::error_code code;
  fs::rename(made, file.temporary(), code);
  if (code) return internal_error("{}: {}", path.string(), code.message());
  return file.publish();
}

}  // namespace

bool is_library_name(const fs::path& path) {
  return path.extension() == ".a" || path.extension() == ".so";
}

std::string library_name(const fs::path& path) {
  std::string name = path.stem().string();
  if (name.size() > 3 && name.starts_with("lib")) name.erase(0, 3);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c >= 128 || std::isalnum(c) == 0; },
      '_');
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "model_" + name
                                                                                : name;
}

Status check_library_tools() {
  for (const std::string& tool : {compiler()[0], std::string("as"), std::string("ld"),
                                  std::string("objcopy"), std::string("ar")})
    if (!is_on_path(tool))
      return error(ErrorCode::kUnavailable,
                   "--emit library needs `{}`, which is not on PATH: install binutils and a C "
                   "compiler",
                   tool);
  return {};
}

Result<std::string> write_library(const fs::path& path, const Plan& plan, const PlanFacts& facts) {
  const std::string name = library_name(path);
  const LibrarySource source =
      TRY(library_source(plan, {name, path.filename().string(), facts.model, facts.threads}));
  // Beside the library: constants may be larger than a folder of temporary files.
  const fs::path beside = fs::absolute(path).parent_path();
  const ScratchFolder scratch = TRY(ScratchFolder::create(beside, ".collage-library-"));
  const fs::path& folder = scratch.path();
  TRY(make_object(source, name, folder, plan, facts));
  const std::string object = (folder / (name + ".o")).string();
  // Of a static library too: it shows that nothing is missing.
  const std::string shared = (folder / "library.so").string();
  Words link = {"-shared", "-Wl,-z,defs", "-Wl,-z,noexecstack",     "-Xlinker",
                "-soname", "-Xlinker",    path.filename().string(), "-o",
                shared,    object};
  if (source.needs_runtime.empty())
    link.insert(link.end(), {"-lm", "-pthread"});
  else
    link.push_back((library_folder() / runtime_library()).string());
  TRY(compile_c(std::move(link)));
  if (path.extension() == ".so") {
    TRY(publish(shared, path));
  } else {
    const std::string archive = (folder / "library.a").string();
    TRY(run_tool({"ar", "rcsD", archive, object}));
    TRY(publish(archive, path));
  }
  TRY(write_file_atomically(beside / (name + ".h"), source.header));
  if (source.needs_runtime.empty()) return std::string();
  return fmt::format("{}, since {}", runtime_library(), source.needs_runtime);
}

}  // namespace collage
