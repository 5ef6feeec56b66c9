// TfIdfVectorizer of numbers: how often each n-gram of a list occurs in a row, its items `distance`
// apart. Each length and distance is a comparison of the row's windows with the n-grams of that
// length, summed over the windows; a product with a matrix of zeros and ones brings the counts to
// their columns.
#include <algorithm>

#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

struct Ngrams {
  int64_t length;
  Ints items;  // one n-gram after the other
  int64_t count() const { return static_cast<int64_t>(items.size()) / length; }
};

struct Vocabulary {
  std::vector<Ngrams> by_length;  // of the lengths that are counted
  Ints columns;                   // where each of their n-grams is counted
  int64_t width = 0;              // columns of the result
};

Result<Vocabulary> read_vocabulary(NodeContext& node, int64_t shortest, int64_t longest) {
  if (node.has_attr("pool_strings")) return unsupported("strings");
  const Ints pool = TRY(node.ints("pool_int64s")), starts = TRY(node.ints("ngram_counts"));
  const Ints columns = TRY(node.ints("ngram_indexes"));
  Vocabulary vocabulary;
  size_t ngram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1;
    const int64_t begin = starts[i];
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
        (end - begin) % length != 0)
      return bad_model("ngram_counts: {} to {} of {} items are no {}-grams", begin, end,
                       pool.size(), length);
    const auto count = static_cast<size_t>((end - begin) / length);
    if (ngram + count > columns.size())
      return bad_model("ngram_indexes has {} entries for more n-grams", columns.size());
    if (length >= shortest && length <= longest && count > 0) {
      vocabulary.by_length.push_back({length, Ints(pool.begin() + begin, pool.begin() + end)});
      vocabulary.columns.insert(vocabulary.columns.end(),
                                columns.begin() + static_cast<ptrdiff_t>(ngram),
                                columns.begin() + static_cast<ptrdiff_t>(ngram + count));
    }
    ngram += count;
  }
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  for (int64_t column : columns) {
    if (column < 0 || column >= kMostColumns) return bad_model("ngram_indexes holds {}", column);
    vocabulary.width = std::max(vocabulary.width, column + 1);
  }
  if (vocabulary.width == 0) return bad_model("there are no n-grams");
  return vocabulary;
}

// How often each n-gram occurs in each row of `data`, (rows, items): (rows, n-grams), float32. Null
// where rows are too short.
Result<Expr> counts_of(NodeContext& node, const Expr& data, const Ngrams& ngrams,
                       int64_t distance) {
  const int64_t rows = shape_of(data)[0], items = shape_of(data)[1];
  const int64_t windows = items - (ngrams.length - 1) * distance;
  if (windows <= 0) return Expr();
  Expr matches;
  for (int64_t k = 0; k < ngrams.length; ++k) {
    const Expr window = TRY(node.call("strided_slice", {data},
                                      {{"begin", Ints{k * distance}},
                                       {"end", Ints{k * distance + windows}},
                                       {"strides", Ints{1}},
                                       {"axes", Ints{1}}}));
    Ints wanted;
    for (int64_t n = 0; n < ngrams.count(); ++n)
      wanted.push_back(ngrams.items[static_cast<size_t>(n * ngrams.length + k)]);
    const Expr equal = TRY(node.call(
        "equal", {TRY(node.reshape(window, {rows, windows, 1})),
                  node.constant_of(Tensor::from<int64_t>({1, 1, ngrams.count()}, wanted))}));
    matches = matches == nullptr ? equal : TRY(node.call("logical_and", {matches, equal}));
  }
  return node.call("sum", {TRY(node.cast(matches, DType::kFloat32))},
                   {{"axis", Ints{1}}, {"keepdims", false}});
}

Result<Expr> convert_tf_idf(NodeContext& node) {
  const int64_t shortest = TRY(node.integer("min_gram_length"));
  const int64_t longest = TRY(node.integer("max_gram_length"));
  const int64_t most_skipped = TRY(node.integer("max_skip_count"));
  const std::string mode = TRY(node.text("mode"));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return bad_model("mode '{}' is neither TF, IDF nor TFIDF", mode);
  constexpr int64_t kMostSkipped = 64;
  if (shortest < 1 || longest < shortest || most_skipped < 0 || most_skipped > kMostSkipped)
    return bad_model("n-grams of {} to {} items, {} skipped", shortest, longest, most_skipped);
  const int64_t rank = node.rank(0);
  if (rank != 1 && rank != 2) return bad_model("data of rank {}", rank);
  if (!is_integer(node.dtype(0))) return unsupported("data of {}", dtype_name(node.dtype(0)));
  const Vocabulary vocabulary = TRY(read_vocabulary(node, shortest, longest));
  const Shape rows_and_items = rank == 2 ? node.shape(0) : Shape{1, node.shape(0)[0]};
  const int64_t rows = rows_and_items[0];
  const Expr data = TRY(node.cast(TRY(node.reshape(node.in(0), rows_and_items)), DType::kInt64));

  std::vector<Expr> counts;
  for (const Ngrams& ngrams : vocabulary.by_length) {
    Expr sum = TRY(node.full(DType::kFloat32, {rows, ngrams.count()}, 0));
    // Of one item there is nothing to skip.
    for (int64_t skipped = 0; skipped <= (ngrams.length > 1 ? most_skipped : 0); ++skipped)
      if (const Expr more = TRY(counts_of(node, data, ngrams, skipped + 1)); more != nullptr)
        sum = TRY(node.call("add", {sum, more}));
    counts.push_back(std::move(sum));
  }
  Shape shape = rank == 2 ? Shape{rows, vocabulary.width} : Shape{vocabulary.width};
  if (counts.empty()) return node.full(DType::kFloat32, shape, 0);
  const Expr all =
      counts.size() == 1
          ? counts[0]
          : TRY(node.call("concatenate", {make_tuple(std::move(counts))}, {{"axis", int64_t{1}}}));
  const auto ngrams = static_cast<int64_t>(vocabulary.columns.size());
  TRY(check_computed_shape({vocabulary.width, ngrams}));
  Tensor places = Tensor::zeros(DType::kFloat32, {vocabulary.width, ngrams});
  for (int64_t n = 0; n < ngrams; ++n)
    places.data<float>()[vocabulary.columns[static_cast<size_t>(n)] * ngrams + n] = 1;
  Expr result = TRY(node.call("nn.dense", {all, node.constant_of(std::move(places))}));
  if (mode == "IDF")
    result = TRY(node.cast(TRY(node.call("greater", {result, TRY(node.scalar_like(result, 0))})),
                           DType::kFloat32));
  if (mode != "TF" && node.has_attr("weights")) {
    const std::vector<double> weights = TRY(node.reals("weights"));
    if (static_cast<int64_t>(weights.size()) != vocabulary.width)
      return bad_model("{} weights for {} columns", weights.size(), vocabulary.width);
    const Expr each =
        node.constant_of(Tensor::from<float>({vocabulary.width}, {weights.begin(), weights.end()}));
    result = TRY(node.call("multiply", {result, each}));
  }
  return node.reshape(result, std::move(shape));
}

}  // namespace

ConverterRows ngram_converters() { return {{"TfIdfVectorizer", 1, 1, single(convert_tf_idf)}}; }

}  // namespace collage::frontend
