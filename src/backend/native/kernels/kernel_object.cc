#include "backend/native/kernels/kernel_object.h"

#include <elf.h>

#include <cstring>
#include <string_view>

namespace collage::native {
namespace {

/// A structure of that type at an offset; false where the file ends before.
template <typename T>
bool read_at(std::string_view file, uint64_t offset, T& to) {
  if (offset > file.size() || sizeof(T) > file.size() - offset) return false;
  std::memcpy(&to, file.data() + offset, sizeof(T));
  return true;
}

/// What a section header speaks of.
bool content_of(std::string_view file, const Elf64_Shdr& section, std::string_view& content) {
  if (section.sh_offset > file.size() || section.sh_size > file.size() - section.sh_offset)
    return false;
  content = file.substr(section.sh_offset, section.sh_size);
  return true;
}

}  // namespace

Result<std::string> kernel_object(const SharedBytes& library) {
  const std::string_view file = library.text();
  const Status damaged = bad_model("native: a compiled kernel is damaged");
  Elf64_Ehdr header{};
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return damaged;
  const auto header_of = [&](size_t section) {
    return header.e_shoff + section * sizeof(Elf64_Shdr);
  };
  Elf64_Shdr names_header{};
  std::string_view names;
  if (!read_at(file, header_of(header.e_shstrndx), names_header) ||
      !content_of(file, names_header, names))
    return damaged;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    if (!read_at(file, header_of(i), section) || section.sh_name > names.size()) return damaged;
    const std::string_view name = names.substr(section.sh_name);
    if (name.substr(0, name.find('\0')) != kObjectSection) continue;
    std::string_view object;
    if (!content_of(file, section, object)) return damaged;
    return std::string(object);
  }
  return bad_model("native: a compiled kernel does not keep its object file");
}

}  // namespace collage::native
