#include "backend/native/symbolic/symbolic_product.h"

#include <algorithm>

#include "backend/native/stages/schedule_steps.h"
#include "backend/native/stages/stage_rows.h"
#include "backend/native/templates/matmul_template.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"
#include "tensor_program/pattern_kind.h"
#include "tensor_program/simplify.h"
#include "tensor_program/stage_plan.h"
#include "tensor_program/symbols.h"
#include "tensor_program/term_walk.h"

namespace collage::native {

namespace tp = tensor_program;
using tp::Stage;
using tp::Term;

namespace {

constexpr int kFewRows = 7, kManyRows = 14;  // of tiles

// What a task reads again and again should stay in L2: rows of so many bytes, or columns.
constexpr int64_t kRowBytes = 256 << 10, kColumnBytes = 768 << 10;
constexpr int kSerialProducts = 1 << 16;  // multiply-adds that are not worth a second thread

bool is_real(DType dtype) { return dtype == DType::kFloat32; }

/// The result has the sum's axes, and reads it at its own indices.
Status check_epilogue(const Stage& result, const Stage& sum) {
  if (!result.value.defined() || !result.updates.empty() || !is_real(result.dtype))
    return unsupported("a product that is not followed by reals");
  if (result.axes.size() != 2 || sum.axes.size() != 2)
    return unsupported("a product of {} dimensions over symbols", sum.axes.size());
  for (size_t d = 0; d < 2; ++d)
    if (result.axes[d].extent != sum.axes[d].extent ||
        !tp::same(result.axes[d].size, sum.axes[d].size))
      return unsupported("a result of other rows than the product");
  for (const Term& load : tp::distinct_loads(result.value))
    for (size_t d = 0; d < load->args.size(); ++d) {
      if (!tp::distinct_loads(load->args[d]).empty()) return unsupported("an index that is read");
      if (load->name == sum.name && !tp::is_variable(load->args[d], result.axes[d].name))
        return unsupported("{} is read in another row", load->name);
    }
  return {};
}

/// The two factors of a sum of products.
Result<std::pair<Term, Term>> factors_of(const Stage& sum) {
  const bool one = sum.updates.size() == 1 && !sum.value.defined() && is_real(sum.dtype) &&
                   sum.updates[0].combine == tp::Combine::kSum && sum.updates[0].over.size() == 1 &&
                   tp::writes_own_elements(sum, sum.updates[0]);
  if (!one) return unsupported("{} is no single sum of rows", sum.name);
  const Term& value = sum.updates[0].value;
  if (value->op != tp::TermOp::kMultiply || value->args[0]->op != tp::TermOp::kLoad ||
      value->args[1]->op != tp::TermOp::kLoad)
    return unsupported("{} multiplies what is computed", sum.name);
  const std::string& column = sum.axes.back().name;
  std::pair<Term, Term> factors{value->args[0], value->args[1]};
  if (tp::depends_on(factors.first, column)) std::swap(factors.first, factors.second);
  return factors;
}

}  // namespace

std::string ProductTile::to_string() const { return fmt::format("m{} n{}", rows, panels); }

Result<RowProduct> row_product(tp::Program& program) {
  if (program.stages.size() == 1 && !program.stages[0].updates.empty()) {
    auto [sum, consumer] = tp::with_consumer(program.stages[0]);
    program.stages = {std::move(sum), std::move(consumer)};
  }
  const Stage* result = result_of(program);
  if (result == nullptr || program.stages.size() != 2)
    return unsupported("a product among other stages over symbols");
  const Stage& sum = program.stages[0];
  TRY(check_epilogue(*result, sum));
  const auto [row_factor, column_factor] = TRY(factors_of(sum));
  const tp::Axis &row = sum.axes[0], &column = sum.axes[1], &term = sum.updates[0].over[0];
  const tp::Buffer* weights = program.find_buffer(column_factor->name);
  if (weights == nullptr || !weights->value.defined() || column_factor->args.size() != 2)
    return unsupported("a product with no constant over symbols");
  if (!row.size.defined() || program.symbols.size() != 1)
    return unsupported("a product of which more than its rows vary");
  if (column.extent % kPanel != 0)
    return unsupported("a product of {} columns over symbols", column.extent);
  const bool plain = tp::is_variable(column_factor->args[0], term.name) &&
                     tp::is_variable(column_factor->args[1], column.name);
  const bool transposed = tp::is_variable(column_factor->args[0], column.name) &&
                          tp::is_variable(column_factor->args[1], term.name);
  if (!plain && !transposed) return unsupported("weights that are no matrix of columns");
  if (!tp::is_variable(row_factor->args.back(), term.name) ||
      program.find_buffer(row_factor->name) == nullptr)
    return unsupported("{} is not read along its rows", row_factor->name);
  const std::vector<std::string> read = tp::loaded_names(*result);
  if (row_factor->name == weights->name ||
      std::find(read.begin(), read.end(), weights->name) != read.end())
    return unsupported("weights that are read twice");
  return RowProduct{sum.name, weights->name, column.extent, term.extent, transposed};
}

std::vector<ProductTile> product_tiles(const RowProduct& product, int64_t rows, bool avx512) {
  struct Choice {
    ProductTile tile;
    double cost;
  };
  std::vector<Choice> choices;
  const int64_t panels = product.columns / kPanel;
  // The largest first: of two that cost the same, one that passes the weights less often.
  for (auto size = static_cast<int>(std::min<int64_t>(rows, most_rows(1, avx512))); size > 0;
       --size) {
    // Few rows have a tile of their own, many one of those that fill the registers best.
    if (size > kFewRows && size != kManyRows) continue;
    if (size == 1 && rows > 1) continue;  // it would read the weights once a row
    Choice best{{size, 0}, 0};
    for (const int n : {1, 2, 3, 4, 6}) {
      if (panels % n != 0 || (n > 1 && size > most_rows(n, avx512)) || (n > 4 && size > 2))
        continue;
      const double cost = tile_cost(n, size, avx512);
      if (best.tile.panels == 0 || cost < best.cost) best = {{size, n}, cost};
    }
    best.cost *= in_tiles(rows, size);
    choices.push_back(best);
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.cost < b.cost; });
  std::vector<ProductTile> tiles;
  for (size_t i = 0; i < std::min<size_t>(2, choices.size()); ++i) tiles.push_back(choices[i].tile);
  return tiles;
}

namespace {

/// Has the sum read its weights from a copy in panels, [columns / 16, terms, 16].
void pack_weights(tp::Program& program, const RowProduct& product) {
  tp::Buffer& buffer = *std::find_if(program.buffers.begin(), program.buffers.end(),
                                     [&](const auto& b) { return b.name == product.weights; });
  const Shape shape{product.columns / kPanel, product.terms, kPanel};
  const MatmulShape matrix{{}, 1, product.columns, product.terms};
  const auto packed = pack_matmul_weights<float>(matrix, buffer.value.data<float>(),
                                                 product.transposed ? 1 : product.columns,
                                                 product.transposed ? product.terms : 1);
  buffer.type.shape = shape;
  buffer.value = Tensor::share(DType::kFloat32, shape, packed.memory(), packed.memory().get());
  Stage& sum = *program.find_stage(product.sum);
  const Term column = tp::var(sum.axes[1].name), term = tp::var(sum.updates[0].over[0].name);
  sum.updates[0].value = tp::rewrite(sum.updates[0].value, [&](const Term& t) {
    if (t->op != tp::TermOp::kLoad || t->name != product.weights) return t;
    return tp::load(t->name, t->dtype, {column / kPanel, term, column % kPanel});
  });
}

void schedule_result(tp::Program& program, const RowProduct& product, const ProductTile& tile,
                     int threads) {
  const Stage result = program.stages.back();
  const std::string &row = result.axes[0].name, &column = result.axes[1].name;
  Steps steps(program, result.name);
  steps.split(column, "column_tile", "column", int64_t{kPanel} * tile.panels);
  // Not guarded: the last tile is moved back.
  steps.split(row, "row_tile", "row", tile.rows);
  steps.reorder({"column", "row", "row_tile", "column_tile"});
  steps.vectorise("column", kPanel);
  if (tile.panels > 1) steps.unroll("column");
  steps.unroll("row");

  const int64_t tiles = product.columns / (kPanel * tile.panels);
  const int64_t line_bytes = product.terms * 4;  // of a row, or a column
  const int64_t row_tiles = std::max<int64_t>(1, kRowBytes / (line_bytes * tile.rows));
  int64_t group = std::clamp<int64_t>(kColumnBytes / (line_bytes * kPanel * tile.panels), 1,
                                      ceil_div(tiles, 4 * threads));
  while (tiles % group != 0) --group;
  steps.split("row_tile", "row_block", "row_in_block", row_tiles, true);
  steps.split("column_tile", "column_group", "column_in_group", group);
  steps.reorder({"column", "row", "row_in_block", "column_in_group", "row_block", "column_group"});
  steps.fuse("row_block", "column_group", "block");
  const Term rows = tp::extent_term(result.axes[0].size, result.axes[0].extent);
  const int block = to_int(row_tiles * tile.rows);
  const Term blocks = (rows + (block - 1)) / block * to_int(tiles / group);
  const int few = to_int(kSerialProducts / (product.columns * product.terms));
  steps.split("block", "task", "inside", tp::select(rows <= few, blocks, Term(1)));
  steps.parallel("task");
}

void schedule_sum(tp::Program& program, const RowProduct& product, const ProductTile& tile) {
  const Stage sum = *program.find_stage(product.sum);
  const std::string &row = sum.axes[0].name, &column = sum.axes[1].name,
                    &term = sum.updates[0].over[0].name;
  Steps steps(program, sum.name);
  steps.compute_at(program.stages.back().name, "row_in_block");
  Steps update(program, sum.name, 0);
  int64_t unrolled = 4;
  while (product.terms % unrolled != 0) unrolled /= 2;
  update.split(term, "term_outer", "term", unrolled);
  update.reorder({column, row, "term", "term_outer"});
  for (Steps* both : {&steps, &update}) {
    both->vectorise(column, kPanel);
    if (tile.panels > 1) both->unroll(column);
    both->unroll(row);
  }
  update.unroll("term");
}

}  // namespace

Result<tp::Program> scheduled_product(tp::Program program, const RowProduct& product,
                                      const ProductTile& tile, int threads) {
  pack_weights(program, product);
  schedule_result(program, product, tile, threads);
  schedule_sum(program, product, tile);
  TRY(tp::verify(program));
  return program;
}

}  // namespace collage::native
