// What a compiled program says of itself: a report, as JSON, and what people read of it. The report
// is text, so that it can be kept, compared (`collage diff`) and shown later, without the program.
#pragma once

#include <collage/collage.h>

#include <string>
#include <vector>

namespace collage {

// What only the caller knows.
struct RunRecord {
  int threads = 0;                  // as in ProgramOptions
  double compile_seconds = 0;       // of Program::compile
  std::vector<double> run_seconds;  // of single runs; empty: the program was not timed
};

// docs/report-schema.json fixes its form. `program` must have been compiled from `model`.
Result<std::string> report_text(const Model& model, const Program& program,
                                const RunRecord& record = {});

// The following take the text of a report. kBadModel: it is none of this version.

// All kernels, their parts of the prediction and their runners-up; or one of them in full, by its
// own name or an ONNX node's (kUsage: there is none).
Result<std::string> explain_report(const std::string& report, const std::string& kernel = "");

// One HTML page that needs nothing else: the graph, its kernels, what they cost.
Result<std::string> report_page(const std::string& report);

}  // namespace collage
