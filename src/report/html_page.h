// Renders a report as one self-contained HTML file: the graph with its kernels laid out, and the
// report itself as JSON beside the script that shows it (the files in page/).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collage {

// The report has passed the schema (read_report.h) or comes from report_json. Names in it may hold
// anything.
std::string html_page(const nlohmann::json& report);

// Returns what the page draws, for each plan (the chosen one first): see page/base.js.
nlohmann::json plan_drawings(const nlohmann::json& report);

}  // namespace collage
