#include "runtime/memory_overlap.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace collage {

namespace {

struct Extent {
  const char *begin, *end;
};

bool is_empty(const TensorMemory& memory) {
  return memory.begin == nullptr ||
         std::any_of(memory.shape.begin(), memory.shape.end(), [](int64_t n) { return n == 0; });
}

// The bytes from the first element to the last one.
Extent extent_of(const TensorMemory& memory) {
  Extent extent{memory.begin, memory.begin};
  int64_t elements = 1;
  for (size_t d = 0; d < memory.shape.size(); ++d) {
    elements *= memory.shape[d];
    if (memory.strides.empty()) continue;
    const int64_t reach =
        (memory.shape[d] - 1) * memory.strides[d] * static_cast<int64_t>(memory.item);
    (reach < 0 ? extent.begin : extent.end) += reach;
  }
  extent.end += memory.item * static_cast<size_t>(memory.strides.empty() ? elements : 1);
  return extent;
}

// Where each element begins, in ascending order.
std::vector<const char*> elements_of(const TensorMemory& memory) {
  std::vector<const char*> elements = {memory.begin};
  int64_t dense = 1;
  for (size_t d = memory.shape.size(); d-- > 0;) {
    const int64_t stride = memory.strides.empty() ? dense : memory.strides[d];
    dense *= memory.shape[d];
    const size_t before = elements.size();
    elements.reserve(before * static_cast<size_t>(memory.shape[d]));
    for (int64_t i = 1; i < memory.shape[d]; ++i)
      for (size_t e = 0; e < before; ++e)
        elements.push_back(elements[e] + i * stride * static_cast<int64_t>(memory.item));
  }
  std::sort(elements.begin(), elements.end());
  return elements;
}

bool overlaps_itself(const TensorMemory& memory) {
  if (memory.strides.empty() || is_empty(memory)) return false;
  const std::vector<const char*> elements = elements_of(memory);
  return std::adjacent_find(elements.begin(), elements.end(), [&](const char* a, const char* b) {
           return b - a < static_cast<std::ptrdiff_t>(memory.item);
         }) != elements.end();
}

}  // namespace

TensorMemory memory_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), dtype_size(tensor.dtype()), tensor.shape(), {}};
}

bool overlap(const TensorMemory& a, const TensorMemory& b) {
  if (is_empty(a) || is_empty(b)) return false;
  const Extent first = extent_of(a), second = extent_of(b);
  if (first.end <= second.begin || second.end <= first.begin) return false;
  if (a.strides.empty() && b.strides.empty()) return true;
  // Elements of one may lie between those of the other.
  const std::vector<const char*> ours = elements_of(a), theirs = elements_of(b);
  for (size_t i = 0, j = 0; i < ours.size() && j < theirs.size();) {
    if (ours[i] + a.item <= theirs[j]) {
      ++i;
    } else if (theirs[j] + b.item <= ours[i]) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

Status check_outputs_apart(std::span<const TensorMemory> inputs,
                           std::span<const TensorMemory> outputs, const NameOf& input_name,
                           const NameOf& output_name) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto refuse = [&](const std::string& what) {
      return bad_model("output '{}': its memory overlaps that of {}", output_name(o), what);
    };
    if (overlaps_itself(outputs[o]))
      return bad_model("output '{}': its elements overlap one another", output_name(o));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (overlap(inputs[i], outputs[o])) return refuse("input '" + input_name(i) + "'");
    for (size_t other = 0; other < o; ++other)
      if (overlap(outputs[other], outputs[o])) return refuse("output '" + output_name(other) + "'");
  }
  return {};
}

}  // namespace collage
