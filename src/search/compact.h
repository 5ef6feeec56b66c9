// CompactProblem: a SearchProblem as dense integers, from which cover_program.h makes an integer
// program.
//
// Nodes are the operator calls that need a kernel, numbered in dataflow order. A group is a tensor
// together with all views of it: they share memory as long as it is row-major. A group's forms are
// the encodings in which it may exist: form 0 is plain (of the tensor and of its views alike), and
// so are those that are row-major on another device; others are one tensor of the group in another
// encoding. A column is one way to cover some nodes: a candidate with the forms it takes and gives.
// Variants of one target with equal nodes and forms share a column, and the cheapest counts; where
// errors are limited, each that errs by less than all cheaper ones has a column.
#pragma once

#include <cstdint>
#include <vector>

#include "base/index_set.h"
#include "base/result.h"
#include "search/cover.h"

namespace collage::search {

struct Form {
  TensorRef tensor;
  Encoding encoding;
  bool shared = false;  // by the tensor and all views of it
};
// Returns the tensor that a conversion between two forms converts: a view, if one form is the
// view's alone.
inline TensorRef converted_tensor(const Form& from, const Form& to) {
  return to.shared ? from.tensor : to.tensor;
}

struct Use {
  uint32_t group;
  uint32_t form;
  auto operator<=>(const Use&) const = default;
};

struct Group {
  TensorRef tensor;         // the one that a call or parameter gives; the rest are views of it
  int32_t root = -1;        // the node that gives it; -1: a parameter (or constant)
  bool is_result = false;   // its form `at_caller` is wanted in the end
  uint32_t at_caller = 0;   // the form in which a parameter exists, and a result is wanted
  std::vector<Form> forms;  // forms[0] is plain
  std::vector<double> conversions;  // forms × forms: seconds without the launch, or infinity
  std::vector<uint32_t> readers;    // nodes that read it (or a view of it), ascending
  double conversion(size_t from, size_t to) const { return conversions[from * forms.size() + to]; }
};

struct Column {
  std::vector<uint32_t> nodes;    // ascending
  std::vector<Use> inputs;        // each once
  std::vector<uint32_t> readers;  // for each input, the first of the nodes that reads the group
  std::vector<Use> outputs;
  double cost = 0;       // launch included
  double error = 0;      // where errors are limited
  Cover::Kernel choice;  // its seconds: `cost`
  // Columns with equal nodes of equal targets have the same number: two covers differ where these
  // do.
  uint32_t kernel = 0;
};

struct CompactProblem {
  const SearchProblem* problem = nullptr;
  std::vector<PostDfsIndex> nodes;  // the graph's index of each node
  std::vector<Group> groups;
  std::vector<Column> columns;
};

// Fails if a node is in no column.
Result<CompactProblem> make_compact(const SearchProblem& problem);

}  // namespace collage::search
