#include "contents.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace collage::python {

namespace {

// What blocks of memory held when this was made: of up to kWhole bytes all of them, of more kPieces
// pieces of kPiece bytes, spread evenly, the first and the last among them.
class Contents {
 public:
  // Addresses and sizes in bytes; the memory has to outlive this.
  explicit Contents(const std::vector<std::pair<uintptr_t, size_t>>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto [address, size] = blocks[i];
      const auto* begin = reinterpret_cast<const uint8_t*>(address);
      if (size <= kWhole) {
        if (size > 0) pieces_.push_back({i, begin, size});
        continue;
      }
      for (size_t piece = 0; piece < kPieces; ++piece)
        pieces_.push_back({i, begin + (size - kPiece) / (kPieces - 1) * piece, kPiece});
    }
    for (const Piece& piece : pieces_)
      held_.insert(held_.end(), piece.begin, piece.begin + piece.size);
  }

  // The blocks that hold something else now.
  std::vector<size_t> changed() const {
    std::vector<size_t> result;
    size_t at = 0;
    for (const Piece& piece : pieces_) {
      const bool same = std::memcmp(piece.begin, held_.data() + at, piece.size) == 0;
      if (!same && (result.empty() || result.back() != piece.block)) result.push_back(piece.block);
      at += piece.size;
    }
    return result;
  }

 private:
  static constexpr size_t kWhole = 1024, kPieces = 4, kPiece = 64;
  struct Piece {
    size_t block;
    const uint8_t* begin;
    size_t size;
  };
  std::vector<Piece> pieces_;
  std::vector<uint8_t> held_;
};

}  // namespace

void bind_contents(nb::module_& core) {
  nb::class_<Contents>(core, "Contents", "Samples of memory, to notice that somebody wrote it.")
      .def(nb::init<const std::vector<std::pair<uintptr_t, size_t>>&>(), nb::arg("blocks"))
      .def("changed", &Contents::changed, "The indices of blocks that hold something else now.");
}

}  // namespace collage::python
