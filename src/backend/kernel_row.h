// KernelRow: what one kind of a backend's kernels is. A backend states its rows once
// (BackendTraits::kernels); its variants take from them what they round and do, and
// `collage targets kernels` prints them.
#pragma once

#include <string>

#include "backend/variant.h"

namespace collage {

struct KernelRow {
  // Unique in the backend.
  std::string name;
  // The operators, in words.
  std::string computes;
  // The instructions that it needs beside those that the backend needs; empty: none.
  std::string isa = {};
  // In what its variants differ: a tile of registers, a division into tasks; empty: there is one.
  std::string tile = {};
  Rounding rounding = {};
  Work work = {};
  // Its variants set Variant::spreads_nan.
  bool spreads_nan = false;

  // The variant, of that name, schedule and encodings, as one of this kind.
  Variant variant(Variant made) const {
    made.rounding = rounding;
    made.work = work;
    made.spreads_nan = spreads_nan;
    return made;
  }
};

}  // namespace collage
