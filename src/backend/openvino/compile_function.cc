#include "backend/openvino/compile_function.h"

#include "backend/openvino/translate.h"
#include "ir/visitor.h"

namespace collage::openvino {

Result<std::unique_ptr<Kernel>> compile_function(const Function& function,
                                                 ov::element::Type precision, int threads) {
  ov::Core* core = TRY(shared_core());
  const Function flat = TRY(inline_calls(function));
  Translation translation = TRY(translate(flat));
  CompiledFunction compiled;
  compiled.precision = precision;
  for (const Expr& param : flat->params) compiled.inputs.push_back(param->tensor_type());
  compiled.outputs = flat->result_type().leaves();
  compiled.results = std::move(translation.results);
  compiled.checks = std::move(translation.checks);
  compiled.constant_bytes = translation.constant_bytes;
  try {
    if (translation.model != nullptr) {
      ov::AnyMap settings = compile_settings(precision, threads);
      // OpenVINO itself reads this; the plugin, which gets all settings of an import, refuses it.
      settings.insert(ov::cache_dir(""));
      // The compiled model keeps what it needs of the constants.
      compiled.model = core->compile_model(translation.model, "CPU", settings);
    }
    return make_kernel(std::move(compiled));
  } catch (const std::exception& exception) {
    return unsupported("OpenVINO cannot compile it: {}", exception.what());
  }
}

}  // namespace collage::openvino
