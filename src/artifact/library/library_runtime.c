/* What a library of `collage compile --emit library` runs its kernels with: memory, threads, and
 * the functions that compiled kernels call (Halide's: parallel loops, scratch memory, errors). It
 * is compiled together with the code that library_source.cc writes behind it. */
#include <cpuid.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, MOST_KEPT = 16, SPINS = 4096, HUGE_PAGE = 2 << 20 };

/* Halide's halide_dimension_t and halide_buffer_t. */
struct dimension {
  int32_t min, extent, stride;
  uint32_t flags;
};
struct buffer {
  uint64_t device;
  const void* device_interface;
  uint8_t* host;
  uint64_t flags;
  uint8_t code, bits;
  uint16_t lanes;
  int32_t dimensions;
  struct dimension* dim;
  void* padding;
};
_Static_assert(sizeof(struct dimension) == 16 && sizeof(struct buffer) == 56,
               "Halide's structures");

typedef int (*task_function)(void*, int, uint8_t*);

/* A block of scratch memory is kept with the thread that gave it back: a kernel asks for the same
 * few sizes on every run. */
struct block {
  size_t bytes;
  struct block* next; /* while it is in use: the one that was asked for before */
  char padding[LINE - sizeof(size_t) - sizeof(struct block*)];
};

/* A thread of a context. */
struct lane {
  struct context* context;
  pthread_t thread; /* not of the first lane, which is whoever runs the context */
  unsigned seen;    /* loops begun before it */
  int in_loop;      /* a loop within a loop is not spread */
  int blocks;
  struct block* kept[MOST_KEPT];
  struct block* used;
  jmp_buf* landing; /* where it goes on when a kernel cannot have scratch memory */
};

/* What the code behind this file says of the program. */
struct program {
  size_t arena_bytes;
  int threads; /* that its kernels were made for */
  const char* const* features;
  size_t inputs, outputs;
  const size_t* bytes; /* of each input, then of each output */
  const char* const* names;
  int (*run)(char* const* in, char* const* out, char* arena);
};

struct context {
  const struct program* program;
  char* arena;
  char** tensors; /* of each input, then of each output: what the kernels use */
  char** staged;  /* aligned stand-ins, made when they are first needed */
  char error[200];

  /* A loop: threads that come while it is open take tasks until none is left. */
  pthread_mutex_t lock;
  pthread_cond_t begun, left;
  atomic_uint loops; /* begun so far; it changes under the lock, as all below */
  int open, stopping;
  atomic_int inside; /* workers in it */
  task_function task;
  uint8_t* closure;
  long long end;
  atomic_llong next;
  atomic_int result;
  atomic_int lacks; /* memory that a kernel asked for */

  pid_t process; /* whose threads they are */
  int lanes;     /* that have a thread */
  struct lane lane[];
};

static _Thread_local struct lane* here; /* while a context runs */
static _Thread_local char message[200];

static void copy(char* to, const char* from, size_t bytes) {
  if (to != from && bytes > 0) memcpy(to, from, bytes);
}

static char* allocate(size_t bytes) {
  const size_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
  /* Vector loads may read up to a line beyond the end. */
  const size_t whole = (bytes + LINE + unit - 1) / unit * unit;
  char* memory = aligned_alloc(unit, whole);
  if (memory == NULL) return NULL;
  if (unit == HUGE_PAGE) (void)madvise(memory, whole, MADV_HUGEPAGE);
  memset(memory, 0, whole);
  return memory;
}

/* ---- Threads ---- */

static void pause_a_little(void) { __builtin_ia32_pause(); }

/* A task of the loop, or where there is none all kernels. They do not look whether they were given
 * the scratch memory that they asked for: where it cannot be had, the thread leaves them. */
static int with_landing(struct context* c, const int* task) {
  struct lane* lane = here;
  jmp_buf* const before = lane->landing;
  struct block* const used = lane->used;
  jmp_buf place;
  if (_setjmp(place) != 0) {
    lane->landing = before;
    while (lane->used != used) {
      struct block* block = lane->used;
      lane->used = block->next;
      free(block);
    }
    return -11;
  }
  lane->landing = &place;
  const int code = task != NULL
                       ? c->task(NULL, *task, c->closure)
                       : c->program->run(c->tensors, c->tensors + c->program->inputs, c->arena);
  lane->landing = before;
  return code;
}

static void take_tasks(struct context* c) {
  for (;;) {
    const long long next = atomic_fetch_add(&c->next, 1);
    if (next >= c->end) return;
    const int task = (int)next, code = with_landing(c, &task);
    if (code != 0) atomic_store(&c->result, code);
  }
}

static void* work(void* argument) {
  struct lane* lane = argument;
  struct context* c = lane->context;
  unsigned seen = lane->seen;
  here = lane;
  lane->in_loop = 1;
  for (;;) {
    for (int i = 0; i < SPINS && atomic_load(&c->loops) == seen; ++i) pause_a_little();
    pthread_mutex_lock(&c->lock);
    while (atomic_load(&c->loops) == seen && !c->stopping) pthread_cond_wait(&c->begun, &c->lock);
    const int stopping = c->stopping, joins = c->open;
    seen = atomic_load(&c->loops);
    if (!stopping && joins) atomic_fetch_add(&c->inside, 1);
    pthread_mutex_unlock(&c->lock);
    if (stopping) return NULL;
    if (!joins) continue;
    take_tasks(c);
    pthread_mutex_lock(&c->lock);
    if (atomic_fetch_sub(&c->inside, 1) == 1) pthread_cond_signal(&c->left);
    pthread_mutex_unlock(&c->lock);
  }
}

static int spread(struct context* c, task_function task, int min, int size, uint8_t* closure) {
  pthread_mutex_lock(&c->lock);
  c->task = task;
  c->closure = closure;
  c->end = (long long)min + size;
  atomic_store(&c->next, min);
  atomic_store(&c->result, 0);
  c->open = 1;
  atomic_fetch_add(&c->loops, 1);
  pthread_cond_broadcast(&c->begun);
  pthread_mutex_unlock(&c->lock);
  take_tasks(c);
  pthread_mutex_lock(&c->lock);
  c->open = 0;
  pthread_mutex_unlock(&c->lock);
  for (int i = 0; i < SPINS && atomic_load(&c->inside) > 0; ++i) pause_a_little();
  pthread_mutex_lock(&c->lock);
  while (atomic_load(&c->inside) > 0) pthread_cond_wait(&c->left, &c->lock);
  pthread_mutex_unlock(&c->lock);
  return atomic_load(&c->result);
}

int halide_do_par_for(void* user, task_function task, int min, int size, uint8_t* closure) {
  struct lane* lane = here;
  int result = 0;
  if (size > 1 && !lane->in_loop && lane->context->lanes > 1) {
    lane->in_loop = 1;
    result = spread(lane->context, task, min, size, closure);
    lane->in_loop = 0;
    return result;
  }
  for (int i = 0; i < size; ++i) {
    const int code = task(user, min + i, closure);
    if (code != 0) result = code;
  }
  return result;
}

/* ---- Scratch memory ---- */

void* halide_malloc(void* user, size_t bytes) {
  struct lane* lane = here;
  int best = -1;
  (void)user;
  for (int i = 0; i < lane->blocks; ++i) {
    const size_t has = lane->kept[i]->bytes;
    if (has < bytes || has / 4 > bytes + 4096) continue;
    if (best < 0 || has < lane->kept[best]->bytes) best = i;
  }
  struct block* block;
  if (best >= 0) {
    block = lane->kept[best];
    lane->kept[best] = lane->kept[--lane->blocks];
  } else {
    const size_t total = (bytes + sizeof(struct block) + 2 * LINE - 1) / LINE * LINE;
    if (total < bytes || (block = aligned_alloc(LINE, total)) == NULL) {
      atomic_store(&lane->context->lacks, 1);
      _longjmp(*lane->landing, 1);
    }
    block->bytes = total - sizeof(struct block);
  }
  block->next = lane->used;
  lane->used = block;
  return block + 1;
}

void halide_free(void* user, void* memory) {
  struct lane* lane = here;
  (void)user;
  if (memory == NULL) return;
  for (struct block** link = &lane->used; *link != NULL; link = &(*link)->next)
    if (*link == (struct block*)memory - 1) {
      *link = (*link)->next;
      break;
    }
  if (lane->blocks == MOST_KEPT) {
    free(lane->kept[0]);
    lane->kept[0] = lane->kept[--lane->blocks];
  }
  lane->kept[lane->blocks++] = (struct block*)memory - 1;
}

/* ---- Errors ---- */

static void report(const char* what) {
  struct context* c = here->context;
  pthread_mutex_lock(&c->lock);
  snprintf(c->error, sizeof c->error, "%s", what);
  pthread_mutex_unlock(&c->lock);
}

static inline int index_is_out(int64_t index, int64_t extent) {
  struct context* c = here->context;
  snprintf(c->error, sizeof c->error, "index %lld is out of range for extent %lld",
           (long long)index, (long long)extent);
  return 1;
}

void halide_error(void* user, const char* what) {
  (void)user;
  report(what);
}
int halide_error_out_of_memory(void* user) {
  (void)user;
  report("out of memory");
  return -11;
}

/* Assertions of programs that users wrote; the arguments, of which every function has others, are
 * left unread (src/backend/native/kernels/runtime_errors.cc). */
#define ASSERTION(name)                 \
  int halide_error_##name(void* user) { \
    (void)user;                         \
    report("assertion failed: " #name); \
    return -1;                          \
  }
ASSERTION(access_out_of_bounds)
ASSERTION(bad_dimensions)
ASSERTION(bad_extern_fold)
ASSERTION(bad_fold)
ASSERTION(bad_type)
ASSERTION(bounds_inference_call_failed)
ASSERTION(buffer_allocation_too_large)
ASSERTION(buffer_argument_is_null)
ASSERTION(buffer_extents_negative)
ASSERTION(buffer_extents_too_large)
ASSERTION(buffer_is_null)
ASSERTION(constraint_violated)
ASSERTION(constraints_make_required_region_smaller)
ASSERTION(device_dirty_with_no_device_support)
ASSERTION(device_interface_no_device)
ASSERTION(explicit_bounds_too_small)
ASSERTION(extern_stage_failed)
ASSERTION(fold_factor_too_small)
ASSERTION(host_and_device_dirty)
ASSERTION(host_is_null)
ASSERTION(no_device_interface)
ASSERTION(requirement_failed)
ASSERTION(specialize_fail)
ASSERTION(split_factor_not_positive)
ASSERTION(storage_bound_too_small)
ASSERTION(unaligned_host_ptr)
ASSERTION(vscale_invalid)

/* ---- Contexts ---- */

static int processor_has(const char* feature) {
  if (strcmp(feature, "avx_vnni") == 0) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
  }
#define FEATURE(name) \
  if (strcmp(feature, name) == 0) return __builtin_cpu_supports(name) != 0;
  FEATURE("sse4.2")
  FEATURE("avx")
  FEATURE("avx2")
  FEATURE("fma")
  FEATURE("avx512f")
  FEATURE("avx512cd")
  FEATURE("avx512bw")
  FEATURE("avx512dq")
  FEATURE("avx512vl")
  FEATURE("avx512vnni")
  FEATURE("avx512vbmi")
  FEATURE("avx512bf16")
  return 1; /* one that no kernel uses */
}

/* Starts the threads of this process; returns how many there are, the caller's among them. */
static int start(struct context* c, int threads) {
  c->process = getpid();
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->begun, NULL);
  pthread_cond_init(&c->left, NULL);
  c->open = c->stopping = 0;
  atomic_store(&c->inside, 0);
  for (c->lanes = 1; c->lanes < threads; ++c->lanes) {
    struct lane* lane = &c->lane[c->lanes];
    lane->seen = atomic_load(&c->loops);
    if (pthread_create(&lane->thread, NULL, work, lane) != 0) break;
  }
  return c->lanes;
}

/* In a child process (fork) there are none, and the lock is as one of them left it. */
static int is_in_child(const struct context* c) { return c->process != getpid(); }

static void finish(struct context* c) {
  if (c == NULL) return;
  if (!is_in_child(c)) {
    pthread_mutex_lock(&c->lock);
    c->stopping = 1;
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
    for (int i = 1; i < c->lanes; ++i) pthread_join(c->lane[i].thread, NULL);
    pthread_cond_destroy(&c->begun);
    pthread_cond_destroy(&c->left);
    pthread_mutex_destroy(&c->lock);
  }
  for (int i = 0; i < c->lanes; ++i)
    while (c->lane[i].blocks > 0) free(c->lane[i].kept[--c->lane[i].blocks]);
  if (c->staged != NULL)
    for (size_t i = 0; i < c->program->inputs + c->program->outputs; ++i) free(c->staged[i]);
  free(c->staged);
  free(c->tensors);
  free(c->arena);
  free(c);
}

static struct context* failed(struct context* c, const char* why) {
  finish(c);
  snprintf(message, sizeof message, "%s", why);
  return NULL;
}

static struct context* begin(const struct program* program, int threads) {
  __builtin_cpu_init();
  for (const char* const* feature = program->features; *feature != NULL; ++feature)
    if (!processor_has(*feature)) {
      snprintf(message, sizeof message, "made for a processor with %s", *feature);
      return NULL;
    }
  if (threads <= 0) threads = program->threads;
  if (threads > 1024) return failed(NULL, "more than 1024 threads");
  struct context* c = calloc(1, sizeof(struct context) + (size_t)threads * sizeof(struct lane));
  if (c == NULL) return failed(NULL, "out of memory");
  c->program = program;
  for (int i = 0; i < threads; ++i) c->lane[i].context = c;
  start(c, 1);
  const size_t tensors = program->inputs + program->outputs;
  c->tensors = calloc(tensors + 1, sizeof(char*));
  c->staged = calloc(tensors + 1, sizeof(char*));
  c->arena = allocate(program->arena_bytes);
  if (c->tensors == NULL || c->staged == NULL || c->arena == NULL)
    return failed(c, "out of memory");
  if (start(c, threads) < threads) return failed(c, "a thread cannot be started");
  return c;
}

static int is_aligned(const void* pointer) { return (uintptr_t)pointer % LINE == 0; }

/* The caller's tensor number `i`, or an aligned one in its place; null on failure. */
static char* tensor(struct context* c, size_t i, const void* given) {
  const size_t bytes = c->program->bytes[i];
  if (given == NULL && bytes > 0) {
    snprintf(c->error, sizeof c->error, "'%s' is null", c->program->names[i]);
    return NULL;
  }
  if (given != NULL && is_aligned(given)) return (char*)given;
  if (c->staged[i] == NULL) c->staged[i] = allocate(bytes);
  if (c->staged[i] == NULL) snprintf(c->error, sizeof c->error, "out of memory");
  return c->staged[i];
}

static int overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
  return first < second + b_bytes && second < first + a_bytes;
}

/* Kernels write outputs while inputs are still read. */
static int outputs_are_apart(struct context* c, const void* const* inputs, void* const* outputs) {
  const struct program* program = c->program;
  const size_t* bytes = program->bytes;
  for (size_t o = 0; o < program->outputs; ++o)
    for (size_t i = 0; i < program->inputs + o; ++i) {
      const void* other = i < program->inputs ? inputs[i] : outputs[i - program->inputs];
      if (!overlap(other, bytes[i], outputs[o], bytes[program->inputs + o])) continue;
      snprintf(c->error, sizeof c->error, "'%s' overlaps '%s'",
               program->names[program->inputs + o], program->names[i]);
      return 0;
    }
  return 1;
}

static int run_kernels(struct context* c, const void* const* inputs, void* const* outputs) {
  const struct program* program = c->program;
  char **in = c->tensors, **out = c->tensors + program->inputs;
  const size_t* bytes = program->bytes;
  if (!outputs_are_apart(c, inputs, outputs)) return 1;
  for (size_t i = 0; i < program->inputs; ++i) {
    if ((in[i] = tensor(c, i, inputs[i])) == NULL) return 1;
    copy(in[i], inputs[i], bytes[i]);
  }
  for (size_t i = 0; i < program->outputs; ++i)
    if ((out[i] = tensor(c, program->inputs + i, outputs[i])) == NULL) return 1;
  atomic_store(&c->lacks, 0);
  if (with_landing(c, NULL) != 0 || atomic_load(&c->lacks) != 0) {
    if (atomic_load(&c->lacks) != 0) snprintf(c->error, sizeof c->error, "out of memory");
    return 1;
  }
  for (size_t i = 0; i < program->outputs; ++i)
    copy(outputs[i], out[i], bytes[program->inputs + i]);
  return 0;
}

static int perform(struct context* c, const void* const* inputs, void* const* outputs) {
  snprintf(c->error, sizeof c->error, "a kernel failed");
  here = &c->lane[0];
  if (is_in_child(c)) start(c, c->lanes); /* loops are right with fewer */
  const int code = run_kernels(c, inputs, outputs);
  here = NULL;
  snprintf(message, sizeof message, "%s", code != 0 ? c->error : "");
  return code;
}
