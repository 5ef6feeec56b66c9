// What a variant's encodings say about how native computes a function: the function in fewer
// dimensions, the layouts of its data and result; and the schedules of templates, each of which a
// variant names by its position. kernel_variants.h lists the variants, kernel_builder.h builds one
// of them; both ask here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/native/kernel_group.h"
#include "backend/native/templates/conv_problem.h"
#include "backend/native/templates/packed_weights.h"
#include "backend/variant.h"

namespace collage::native {

/// Whether native computes the function as stages of one program: it calls a tensor program, and
/// has no anchor with a template.
bool computes_stages(const Function& function);

bool has_avx512();

ChannelLayout layout_of(const Encoding& encoding);
/// Of the inputs, then the output.
std::vector<ChannelLayout> layouts_of(const Variant& variant);

/// Which parameters the anchor's data depends on (its prologue); the others belong to the epilogue.
std::vector<bool> prologue_params(const KernelGroup& group);

/// The function as this variant computes it.
Function collapsed_for(const Function& function, const Variant& variant);

/// One of the templates for convolutions with a schedule of its own.
struct ConvChoice {
  std::string kind;  ///< the row of kernel_table.h
  std::string name;
  bool reads_ahead = false;     ///< weights (weights_ahead.h)
  bool of_small_image = false;  ///< it reads the image before that is enlarged
  std::vector<int64_t> packed;  ///< extents of packed weights, innermost first
  std::function<PackedWeights<float>(const float* weights)> pack;
  std::function<Halide::Func(const Access& data, Halide::ImageParam weights, const Epilogue&)>
      build;

  /// Variant::weights.
  std::string weight_form() const;
};
/// Best guess first.
std::vector<ConvChoice> conv_choices(const KernelGroup& group, ChannelLayout in, ChannelLayout out,
                                     int threads);

MatmulProblem matmul_problem(const KernelGroup& group);
/// Variant::weights of products: float32, or `half`.
std::string weight_form(const MatmulProblem& problem, bool half);

}  // namespace collage::native
