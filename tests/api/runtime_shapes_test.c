/* Loads an artifact of several shapes, y = max(x, 0) of (batch, 3), and runs it on two sizes. Exits
 * with 1, saying why, where anything is wrong. */
#include "runtime_checks.h"

enum { kColumns = 3, kMost = 9 };

int main(int argc, char** argv) {
  require(argc == 2, "usage: runtime_shapes_test F.collage");
  collage_program* program = NULL;
  require(collage_program_load(argv[1], &program) == 0, "load");
  collage_tensor_info info;
  require(collage_program_input(program, 0, &info) == 0 && info.ndim == 2 && info.shape[0] == -1 &&
              info.shape[1] == kColumns,
          "the input's type");
  collage_context* context = NULL;
  require(collage_context_create(program, &context) == 0, "context");
  collage_program_free(program);

  float values[kMost * kColumns], spare[kMost * kColumns];
  for (int i = 0; i < kMost * kColumns; ++i) values[i] = (float)(i % 5) - 2;
  for (int64_t rows = 3; rows <= kMost; rows += 6) {
    int64_t shape[] = {rows, kColumns};
    DLManagedTensor x = tensor(values, 2, shape, NULL), y = tensor(spare, 2, shape, NULL);
    DLManagedTensor *input = &x, *made = NULL, *given = &y;
    require(collage_context_run(context, &input, 1, &made, 1) == 0, "run");
    require(made->dl_tensor.shape[0] == rows && made->dl_tensor.shape[1] == kColumns, "its shape");
    require(collage_context_run(context, &input, 1, &given, 1) == 0, "run into a tensor");
    for (int64_t i = 0; i < rows * kColumns; ++i) {
      const float expected = values[i] > 0 ? values[i] : 0;
      require(((float*)made->dl_tensor.data)[i] == expected && spare[i] == expected, "a value");
    }
    made->deleter(made);
    int64_t wrong[] = {rows + 1, kColumns};
    y = tensor(spare, 2, wrong, NULL);
    require(collage_context_run(context, &input, 1, &given, 1) == 3, "an output of another shape");
  }
  int64_t shape[] = {3, kColumns + 1};
  DLManagedTensor x = tensor(values, 2, shape, NULL), *input = &x, *made = NULL;
  require(collage_context_run(context, &input, 1, &made, 1) == 3, "an input of other columns");
  collage_context_reset(context);
  collage_context_reset(NULL);
  collage_context_free(context);
  return 0;
}
