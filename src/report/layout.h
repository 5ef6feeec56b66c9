// Layered layout of an acyclic graph of boxes, for the HTML page.
//
// Boxes stand in layers, producers above consumers (longest path); the order within a layer follows
// the mean position of neighbours, and positions minimise the squared distance to them without
// overlap (pooling of adjacent violators). A graph that would be much taller than wide is folded
// into columns, cut where few edges pass, so that a deep model fits a screen. Edges that leave
// their column, or skip many layers, run through the gutters between columns and the gaps between
// layers.
//
// Takes about 0.1 s for 5,000 boxes. (The method is that of Sugiyama, Tagawa and Toda, 1981.)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace collage {

struct LayoutPoint {
  double x = 0, y = 0;
};

struct LayoutBox {
  double width = 0, height = 0;
  double x = 0, y = 0;  // of its upper left corner: the result
};

struct LayoutEdge {
  size_t from = 0, to = 0;  // boxes; from comes before to in their list
  std::string path = {};    // an SVG path: the result
  LayoutPoint label = {};   // where its description fits, beside the consumer
  LayoutPoint middle = {};  // a point on it for a badge
};

struct LayoutOptions {
  double layer_gap = 34, box_gap = 18;
  double aspect = 2;  // width over height that folding aims at; 0: no folding
};

struct LayoutSize {
  double width = 0, height = 0;
};

LayoutSize lay_out(std::vector<LayoutBox>& boxes, std::vector<LayoutEdge>& edges,
                   const LayoutOptions& options = {});

}  // namespace collage
