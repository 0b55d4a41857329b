// graphblas: SuiteSparse:GraphBLAS's product of a sparse and a full matrix, on one
// thread, over a random graph as in propagation.py's kernel:
//
//	graphblas NODES ROWS EDGES COLUMNS ROUNDS
//
// ROWS rows of EDGES uniformly random sources among NODES. The values of the sparse
// matrix are one (iso-valued), and the semiring plus-second never reads them.
#include <GraphBLAS.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(GrB_Info info, const char *what) {
	if (info < 0) {
		fprintf(stderr, "%s: %s\n", what, info == GrB_OUT_OF_MEMORY ? "out of memory" : "GraphBLAS error");
		exit(1);
	}
}

static void *allocate(size_t count, size_t size) {
	void *p = malloc(count * size);
	if (p == NULL) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return p;
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static uint64_t draw(uint64_t *state) {
	uint64_t x = (*state += 0x9E3779B97F4A7C15);
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
	x = (x ^ x >> 27) * 0x94D049BB133111EB;
	return x ^ x >> 31;
}

static int ascending(const void *a, const void *b) {
	GrB_Index x = *(const GrB_Index *)a, y = *(const GrB_Index *)b;
	return (x > y) - (x < y);
}

static GrB_Matrix random_graph(GrB_Index nodes, GrB_Index rows, GrB_Index edges) {
	GrB_Index *offsets = allocate(rows + 1, sizeof *offsets), *sources = allocate(edges, sizeof *sources);
	float *one = allocate(1, sizeof *one);
	uint64_t state = 1;
	*one = 1;
	for (GrB_Index i = 0; i < edges; i++)
		sources[i] = draw(&state) % nodes;
	for (GrB_Index row = 0; row <= rows; row++)
		offsets[row] = row * edges / rows;
	for (GrB_Index row = 0; row < rows; row++)
		qsort(sources + offsets[row], offsets[row + 1] - offsets[row], sizeof *sources, ascending);
	GrB_Matrix matrix;
	check(GxB_Matrix_import_CSR(&matrix, GrB_FP32, rows, nodes, &offsets, &sources, (void **)&one, (rows + 1) * sizeof *offsets,
			  edges * sizeof *sources, sizeof *one, true, false, NULL),
	    "import");
	return matrix;
}

static GrB_Matrix full(GrB_Index rows, GrB_Index columns, uint64_t state) {
	float *values = allocate(rows * columns, sizeof *values);
	for (GrB_Index i = 0; i < rows * columns; i++)
		values[i] = state ? (draw(&state) >> 40) * 0x1p-24f : 0;
	GrB_Matrix matrix;
	check(GxB_Matrix_import_FullR(&matrix, GrB_FP32, rows, columns, (void **)&values, rows * columns * sizeof *values, false, NULL), "import");
	return matrix;
}

int main(int argc, char **argv) {
	if (argc != 6) {
		fprintf(stderr, "usage: graphblas NODES ROWS EDGES COLUMNS ROUNDS\n");
		return 2;
	}
	GrB_Index nodes = strtoull(argv[1], NULL, 10), rows = strtoull(argv[2], NULL, 10), edges = strtoull(argv[3], NULL, 10);
	GrB_Index columns = strtoull(argv[4], NULL, 10);
	int rounds = atoi(argv[5]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	check(GrB_init(GrB_NONBLOCKING), "init");
	check(GxB_Global_Option_set(GxB_NTHREADS, 1), "threads");
	check(GxB_Global_Option_set(GxB_FORMAT, GxB_BY_ROW), "format");
	printf("{\"phase\": \"build matrix\"}\n");
	GrB_Matrix a = random_graph(nodes, rows, edges), x = full(nodes, columns, 1), y = full(rows, columns, 0);
	printf("{\"phase\": \"rounds\"}\n");
	double *rates = allocate(rounds + 1, sizeof *rates);
	for (int round = 0; round <= rounds; round++) {
		double start = now();
		// Adding to a full matrix spares it the search for the pattern of the result.
		check(GrB_mxm(y, NULL, GrB_PLUS_FP32, GxB_PLUS_SECOND_FP32, a, x, NULL), "product");
		check(GrB_wait(y, GrB_MATERIALIZE), "product");
		rates[round] = edges / (now() - start);
	}
	printf("{\"version\": \"SuiteSparse:GraphBLAS %d.%d.%d\", \"seconds\": {}, \"rates\": [", GxB_IMPLEMENTATION_MAJOR, GxB_IMPLEMENTATION_MINOR, GxB_IMPLEMENTATION_SUB);
	for (int round = 1; round <= rounds; round++)
		printf("%s%.0f", round > 1 ? ", " : "", rates[round]);
	printf("]}\n");
	return 0;
}
