#include "passes/passes.h"

#include "passes/attention.h"
#include "passes/common_subexpressions.h"
#include "passes/dead_code.h"
#include "passes/fold_batch_norm.h"
#include "passes/fold_constants.h"
#include "passes/fold_quantised_scale.h"
#include "passes/fold_scale.h"
#include "passes/inline_functions.h"
#include "passes/lift_layouts.h"
#include "passes/recognise_activations.h"
#include "passes/recognise_layer_norm.h"
#include "passes/recognise_quantised.h"
#include "passes/recognise_softmax.h"
#include "passes/simplify.h"
#include "passes/simplify_quantised.h"
#include "passes/widen_halves.h"
#include "tensor_program/call.h"
#include "tensor_program/defined_operator.h"
#include "tensor_program/module_programs.h"

namespace collage {

Pipeline simplification_pipeline() {
  return Pipeline({
      {"inline_functions", inline_functions},
      {"dead_code", remove_dead_code},
      {"link_programs", tensor_program::link_programs},
      function_pass("expand_defined", tensor_program::expand_defined),
      // All below look at float32 alone, as most backends do.
      function_pass("widen_halves", widen_halves),
      // While quantised weights are integers: folding makes real numbers of them.
      function_pass("recognise_quantised", recognise_quantised),
      // Constants first: what they decide (shapes, masks, scales) is looked at by all others.
      function_pass("fold_constants", fold_constants),
      // Of arguments that are constants by now; what it takes out is to be folded again.
      function_pass("lift_layouts", lift_layouts),
      function_pass("fold_constants", fold_constants),
      function_pass("simplify", simplify),
      function_pass("simplify_quantised", simplify_quantised),
      // Idioms are matched on graphs where equal things are one node.
      function_pass("common_subexpressions", eliminate_common_subexpressions),
      function_pass("fold_batch_norm", fold_batch_norm),
      function_pass("recognise_layer_norm", recognise_layer_norm),
      function_pass("recognise_activations", recognise_activations),
      function_pass("recognise_softmax", recognise_softmax),
      function_pass("recognise_attention", recognise_attention),
      // After the idioms, whose factors it would pull into neighbouring weights.
      function_pass("fold_scale", fold_scale),
      // After round trips by equal scales were recognised.
      function_pass("fold_quantised_scale", fold_quantised_scale),
      // What the passes above left behind.
      function_pass("fold_constants", fold_constants),
      function_pass("simplify", simplify),
      function_pass("common_subexpressions", eliminate_common_subexpressions),
  });
}

}  // namespace collage
