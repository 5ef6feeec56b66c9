#include "dynamic/padding_check.h"

#include <algorithm>
#include <optional>
#include <string>

#include "artifact/bucketing/padding.h"
#include "dynamic/dynamic_program.h"
#include "verify/comparison.h"

namespace collage {

namespace {

// Sizes that are tried. No two parts of a sum are padded alike, so that a result cut in the wrong
// place shows.
constexpr int64_t kSize = 2, kBucketedSize = 3, kPaddedBy = 2;
constexpr uint64_t kSeed = 29;

// Every named dimension, with its size.
DimSizes sizes_to_try(const std::vector<TensorInfo>& inputs, const DynamicOptions& options) {
  DimSizes sizes;
  for (const TensorInfo& input : inputs)
    for (const std::string& dim : input.dims)
      if (const std::optional<DimSum> sum = DimSum::parse(dim))
        for (const DimSum::Term& term : sum->terms)
          if (!term.name.empty())
            sizes[term.name] = options.buckets.count(term.name) != 0 ? kBucketedSize : kSize;
  return sizes;
}

Status check(const StageContext& context, const DynamicOptions& options,
             const std::vector<TensorInfo>& inputs, const std::vector<TensorInfo>& outputs) {
  const DimSizes sizes = sizes_to_try(inputs, options);
  DimSizes padded = sizes;
  int64_t more = kPaddedBy;
  for (const auto& [name, buckets] : options.buckets) padded[name] += more++;
  const TensorsByName tensors = TRY(random_tensors(*context.model, inputs, sizes, {}, kSeed));
  TensorsByName large;
  for (const TensorInfo& input : inputs) {
    const Tensor& tensor = tensors.at(input.name);
    auto value = options.padding.find(input.name);
    large[input.name] =
        TRY(pad_tensor(tensor, PaddedShape::of(input, tensor.shape(), sizes, padded),
                       value == options.padding.end() ? 0 : value->second));
  }
  const std::vector<Tensor> expected = TRY(run_reference(context, tensors));
  const std::vector<Tensor> results = TRY(run_reference(context, std::move(large)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    PaddedShape shape = PaddedShape::of(outputs[i], results[i].shape(), sizes, padded);
    if (shape.shape() != expected[i].shape())
      return error(ErrorCode::kVerification,
                   "output '{}' has shape {} for padded inputs and {} for others; its dimensions "
                   "do not say which part of it is padding",
                   outputs[i].name, shape_to_string(results[i].shape()),
                   shape_to_string(expected[i].shape()));
    const Difference compared =
        compare_tensors(TRY(cut_tensor(results[i], shape)), expected[i], model_tolerance());
    if (!compared.within)
      return error(ErrorCode::kVerification,
                   "output '{}' depends on what inputs are padded with: {}", outputs[i].name,
                   compared.reason);
  }
  return {};
}

}  // namespace

Status check_padding(const StageContext& context, const DynamicOptions& options,
                     const std::vector<TensorInfo>& inputs,
                     const std::vector<TensorInfo>& outputs) {
  return check(context, options, inputs, outputs).with_context("buckets");
}

}  // namespace collage
