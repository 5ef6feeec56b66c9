// The report of a compiled program, as JSON, and text for people made of it. A report can be kept,
// compared (`collage diff`) and shown later, without the program.
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

// Returns a report in the form of docs/report-schema.json. `program` must have been compiled from
// `model`.
Result<std::string> report_text(const Model& model, const Program& program,
                                const RunRecord& record = {});

// These functions take the text of a report. kBadModel: it is no report of this version.

// Describes all kernels, their parts of the prediction and their runners-up; or one kernel in full,
// by its own name or an ONNX node's (kUsage: there is none).
Result<std::string> explain_report(const std::string& report, const std::string& kernel = "");

// Returns one self-contained HTML page: the graph, its kernels and their costs.
Result<std::string> report_page(const std::string& report);

}  // namespace collage
