#include <collage/progress.h>

#include "compiler/compile.h"

namespace collage {

namespace {

class Teller : public Progress {
 public:
  explicit Teller(const ProgressFunction& tell) : tell_(tell) {}
  void update(std::string_view phase, size_t done, size_t total, size_t cached,
              size_t failed) override {
    tell_(phase, done, total, cached, failed);
  }
  void finish(std::string_view) override {}

 private:
  const ProgressFunction& tell_;
};

}  // namespace

Result<Program> compile_with_progress(const Model& model, const ProgramOptions& options,
                                      const ProgressFunction& progress) {
  Teller teller(progress);
  return compile_model(model, options, progress ? &teller : nullptr);
}

}  // namespace collage
