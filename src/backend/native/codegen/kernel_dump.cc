#include "backend/native/codegen/kernel_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/files.h"
#include "base/hash.h"

namespace collage::native {

Result<KernelDump> KernelDump::open(const Variant& variant, const std::string& function) {
  constexpr size_t kDigits = 10;
  KernelDump dump;
  dump.folder_ = TRY(DumpFolder::open());
  if (!dump.folder_.has_filter()) return dump;
  std::string name = variant.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  dump.prefix_ = fmt::format("kernel_{}_{}", name,
                             sha256_hex(function + variant.to_string()).substr(0, kDigits));
  return dump;
}

Status KernelDump::write(std::string_view step, const std::function<Result<std::string>()>& text) {
  const int number = ++steps_;
  if (!folder_.has_filter() || !folder_.wants(fmt::format("kernel_{}", step))) return {};
  return write_file_atomically(folder_.path(fmt::format("{}_{}_{}.txt", prefix_, number, step)),
                               TRY(text()));
}

}  // namespace collage::native
