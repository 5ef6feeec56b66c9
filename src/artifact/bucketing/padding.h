// Pads named dimensions to buckets: determines the sizes of a run, pads tensors, cuts results back.
// A dimension may be a sum, "past + sequence": its parts lie one behind the other, each padded at
// its own end.
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
  // Returns none for "?" and anything else that is no sum.
  static std::optional<DimSum> parse(const std::string& text);
};

using DimSizes = std::map<std::string, int64_t>;

// Describes a tensor by its dimensions' texts; the shape has -1 for those that are no numbers.
TensorInfo open_tensor(std::string name, std::vector<std::string> dims, DType dtype,
                       bool has_shape = true);

// Returns the sizes of named dimensions by the given tensors and the known sizes. kBadModel: they
// contradict the declaration or each other.
Result<DimSizes> sizes_of(const std::vector<TensorInfo>& declared, const std::vector<Shape>& shapes,
                          DimSizes known = {});

// Returns the smallest buckets that hold the sizes; a dimension without buckets stays. kBadModel:
// one is larger than every bucket.
Result<DimSizes> bucket_sizes(const DimSizes& sizes,
                              const std::map<std::string, std::vector<int64_t>>& buckets);

// The extents of a tensor's parts along each of its dimensions, unpadded and padded.
struct PaddedShape {
  struct Part {
    int64_t size, padded;
  };
  std::vector<std::vector<Part>> dims;

  // A dimension without a name has its extent in `shape`, the tensor's own.
  static PaddedShape of(const TensorInfo& declared, const Shape& shape, const DimSizes& sizes,
                        const DimSizes& padded);
  Shape shape() const;
  Shape padded() const;
  bool is_padded() const { return shape() != padded(); }
};

Result<Tensor> pad_tensor(const Tensor& tensor, const PaddedShape& shape, double value);
Result<Tensor> cut_tensor(const Tensor& tensor, const PaddedShape& shape);
// Writes a tensor to the place behind the first `offset` of dimension `axis` of a larger one.
void write_part(const Tensor& part, Tensor& whole, size_t axis, int64_t offset);

}  // namespace collage
