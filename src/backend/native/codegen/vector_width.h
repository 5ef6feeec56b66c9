// How many float32 elements a vector register of the processor has. Schedules depend on it.
#pragma once

namespace collage::native {

int vector_width();

/// For tests: until it goes, schedules are those for registers of so many elements, whatever the
/// processor that the code is for. Wider vectors than it has are several of its registers.
class AssumedVectorWidth {
 public:
  explicit AssumedVectorWidth(int width);
  ~AssumedVectorWidth();
  AssumedVectorWidth(AssumedVectorWidth&&) = delete;
};

}  // namespace collage::native
