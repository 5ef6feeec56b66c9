#include "report/save_program.h"

#include "artifact/write_artifact.h"
#include "base/json_fields.h"
#include "base/no_exceptions.h"
#include "compiler/model_stages.h"
#include "report/read_report.h"
#include "report/report.h"
#include "report/saved_module.h"

namespace collage {

Status save_program(const Program& program, const Model& model, const nlohmann::json& report,
                    const std::filesystem::path& path, const std::string& signing_key) {
  const internal::CompiledProgram& impl = program.impl();
  std::vector<ZipEntry> entries = TRY(module_entries(TRY(linked(model))));
  auto text = std::make_shared<const std::string>(json_text(report));
  entries.push_back({kReportEntry, {{text, text->data()}, text->size()}});
  PlanFacts facts{impl.threads, model.impl().path.filename().string(), impl.max_error,
                  impl.any_threads, TRY(SigningKey::parse_if_given(signing_key))};
  if (!impl.features.empty()) facts.features = impl.features;
  return write_artifact(path, *impl.plan, facts, std::move(entries));
}

Result<nlohmann::json> embedded_report(ArtifactFile& file) {
  const SharedBytes text = TRY(file.entry(kReportEntry));
  return parse_report(std::string(text.text()), kReportEntry);
}

Status Program::save(const Model& model, const std::filesystem::path& path,
                     const std::string& signing_key) const {
  return without_exceptions([&]() -> Status {
    const auto* compiled = dynamic_cast<const internal::CompiledProgram*>(impl_.get());
    if (compiled == nullptr) return usage_error("no model was compiled to this program here");
    RunFacts facts;
    facts.threads = compiled->threads;
    return save_program(*this, model, report_json(model, compiled->report, facts), path,
                        signing_key);
  });
}

}  // namespace collage
