#include "backend/contraction/kernels/processor.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace collage::contraction {
namespace {

constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr int kTileData = 18;               // XFEATURE_XTILEDATA

Status ask_for_it() {
  if (!__builtin_cpu_supports("avx512bf16"))
    return error(ErrorCode::kUnavailable, "this processor has no AVX-512 BF16");
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr unsigned kTile = 1u << 24, kBf16 = 1u << 22;
  if ((d & kTile) == 0 || (d & kBf16) == 0)
    return error(ErrorCode::kUnavailable, "this processor has no matrix unit (AMX)");
  if (::syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
    return error(ErrorCode::kUnavailable, "the system does not let programs use AMX: {}",
                 std::strerror(errno));
  return {};
}

}  // namespace

Status matrix_unit() {
  static const Status status = ask_for_it();
  return status;
}

}  // namespace collage::contraction
