// What a variant's schedule and encodings say about how native computes a function: the function in
// fewer dimensions, the layouts of its data and result, and the template's schedule, which is a
// position among those of the anchor. kernel_variants.h lists the variants,
// kernel_builder.h builds one of them; both ask here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/native/kernel_group.h"
#include "backend/native/templates/conv_schedules.h"
#include "backend/native/templates/depthwise_template.h"
#include "backend/native/templates/upsampled_conv_template.h"
#include "backend/native/templates/winograd_template.h"
#include "backend/variant.h"

namespace collage::native {

/// The schedule of a call of a tensor program alone, as it stands.
inline const std::string kProgram = "program";

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

/// A schedule of one of the templates for convolutions.
struct ConvChoice {
  ConvProblem problem;
  ConvSchedule conv;
  DepthwiseSchedule depthwise;
  std::optional<UpsampledSchedule> upsampled;
  std::optional<WinogradSchedule> winograd;
  std::string name;
};

/// Whether a direct convolution, not depthwise, multiplies the channels of other groups by 0, which
/// spreads NaN.
bool joins_groups(const ConvChoice& choice);

/// Variant::weights: how the template packs them.
std::string weight_form(const ConvChoice& choice, bool depthwise);
std::string weight_form(const MatmulProblem& problem, bool lowered);

std::vector<ConvChoice> conv_choices(const KernelGroup& group, ChannelLayout in, ChannelLayout out,
                                     int threads);

MatmulProblem matmul_problem(const KernelGroup& group);
/// Starts the schedules of products whose weights are stored in bfloat16; they compute in float32.
inline const std::string kHalfWeights = "bfloat16 ";

}  // namespace collage::native
