// A model over symbols: one module for all sizes of its inputs' open dimensions.
//
//   auto bert = collage::SymbolicModel::load("bert.onnx");     // symbols: batch, sequence
//   std::cout << bert->text();                                 // %tokens: Tensor[(batch,
//   sequence), int64] auto model = bert->at({{"batch", 1}, {"sequence", 128}});  // a model of
//   numbers auto program = collage::Program::compile(*bert, options);  // for the shapes that come
//
// docs/modules.md says what text over symbols is, and what its instances are.
#pragma once

#include <collage/dynamic.h>
#include <collage/module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace collage {

namespace internal {
struct SymbolicModelImpl;
}

struct SymbolicOptions {
  // Of an ONNX model: what a named dimension is, a number or a term over others ("past +
  // sequence").
  std::map<std::string, std::string> dims;
  std::map<std::string, Tensor> constants;        // as in LoadOptions
  std::vector<std::filesystem::path> data_roots;  // as in LoadOptions
};

class SymbolicModel {
 public:
  using Sizes = std::map<std::string, int64_t>;

  // Reads text over symbols (.relay, .script, .py), or an ONNX model, which is imported for several
  // sizes of its open dimensions: what these have in common is the module. kUnsupported: a part of
  // it needs values of a run, or it differs between sizes in more than integers. kUsage: text takes
  // no options.
  static Result<SymbolicModel> load(const std::filesystem::path& path,
                                    const SymbolicOptions& options = {});
  // Likewise of what `build` returns for each size, which may fail for some. Each symbol is a
  // dimension of an input alone.
  static Result<SymbolicModel> generalise(
      const std::vector<std::string>& symbols,
      const std::function<Result<Model>(const Sizes& sizes)>& build);

  const std::vector<std::string>& symbols() const;
  // Dimensions as text: "batch", "2 * n + 1"; "?" of a result where no term is known.
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  // Relay text or script, as it was read. Large constants are in a file beside it.
  const std::string& text() const;

  // Returns the model of these sizes, simplified as Model::load does. kUnsupported: a symbol has
  // none. kBadModel: the sizes do not fit.
  Result<Model> at(const Sizes& sizes, bool simplify = true) const;
  // Writes text that was made here to a file whose name ends in .relay, and large constants to a
  // file beside it (.relay.bin).
  Status save(const std::filesystem::path& path) const;

  explicit SymbolicModel(std::shared_ptr<const internal::SymbolicModelImpl> impl)
      : impl_(std::move(impl)) {}
  const internal::SymbolicModelImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const internal::SymbolicModelImpl> impl_;
};

}  // namespace collage
