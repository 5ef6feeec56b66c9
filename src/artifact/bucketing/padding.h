// Named dimensions whose sizes are raised to buckets: which sizes a run has, tensors padded to
// theirs, results cut back. A dimension may be a sum, "past + sequence": its parts are padded each
// at its own end, as they lie behind one another.
#pragma once

#include <collage/context.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

// A dimension as the model declares it: the sum of names and numbers.
struct DimSum {
  struct Term {
    std::string name;  // empty: a number
    int64_t number = 0;
  };
  std::vector<Term> terms;
  // None for "?" and for whatever else is no sum.
  static std::optional<DimSum> parse(const std::string& text);
};

using DimSizes = std::map<std::string, int64_t>;

// What the named dimensions are by the tensors that came, beside those that are known. kBadModel
// where they contradict what is declared or each other.
Result<DimSizes> sizes_of(const std::vector<DynamicTensorInfo>& declared,
                          const std::vector<Shape>& shapes, DimSizes known = {});

// The smallest buckets that hold the sizes; a dimension without buckets stays. kBadModel where one
// is larger than every bucket.
Result<DimSizes> bucket_sizes(const DimSizes& sizes,
                              const std::map<std::string, std::vector<int64_t>>& buckets);

// The extents of a tensor's parts along each of its dimensions, as they are and as they are padded.
struct PaddedShape {
  struct Part {
    int64_t size, padded;
  };
  std::vector<std::vector<Part>> dims;

  // `shape` is the tensor's own where a dimension has no name.
  static PaddedShape of(const DynamicTensorInfo& declared, const Shape& shape,
                        const DimSizes& sizes, const DimSizes& padded);
  Shape shape() const;
  Shape padded() const;
  bool is_padded() const { return shape() != padded(); }
};

Result<Tensor> pad_tensor(const Tensor& tensor, const PaddedShape& shape, double value);
Result<Tensor> cut_tensor(const Tensor& tensor, const PaddedShape& shape);
// Writes a tensor to the place behind the first `offset` of dimension `axis` of a larger one.
void write_part(const Tensor& part, Tensor& whole, size_t axis, int64_t offset);

}  // namespace collage
