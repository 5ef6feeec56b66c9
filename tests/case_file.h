// Files of cases, text in and text out:
//
//   any lines that say what all cases share            the head
//   === one sentence of intent
//   with anything                                      optional
//   input, some lines
//   ---
//   expected output, some lines
#pragma once

#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"

namespace collage {

struct Case {
  std::string intent, with, input, expected;
};
struct CaseFile {
  std::string head;
  std::vector<Case> cases;
};

inline CaseFile read_cases(const std::filesystem::path& path) {
  CaseFile file;
  std::istringstream lines(*read_file(path));
  bool output = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("=== ")) {
      file.cases.push_back({line.substr(4), "", "", ""});
      output = false;
    } else if (file.cases.empty()) {
      if (!line.empty()) file.head += line + "\n";
    } else if (line.starts_with("with ") && !output) {
      file.cases.back().with = line.substr(5);
    } else if (line == "---") {
      output = true;
    } else {
      (output ? file.cases.back().expected : file.cases.back().input) += line + "\n";
    }
  }
  return file;
}

inline std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0]))) text.erase(0, 1);
  return text;
}

inline void write_cases(const std::filesystem::path& path, const CaseFile& file) {
  std::ofstream out(path);
  out << file.head;
  for (const Case& c : file.cases)
    out << "\n=== " << c.intent << "\n"
        << (c.with.empty() ? "" : "with " + c.with + "\n") << c.input << "---\n"
        << trimmed(c.expected) << "\n";
}

}  // namespace collage
