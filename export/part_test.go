package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// Parts of every artifact, one after the other, are the whole export in every format: of csv all bytes but the
// header, of the others the rows. So they are where a part is scanned row by row, and where there are more parts than rows.
func TestPartsAreTheWhole(t *testing.T) {
	f := newFixture(t)
	for _, what := range append(slices.Clone(Artifacts), "predictions with true labels") {
		what, truth := strings.CutSuffix(what, " with true labels")
		for _, format := range Formats {
			export := func(p share.Part, free int64) (text []byte, rows int64) {
				t.Helper()
				if what == "features" || what == "edges" || truth {
					free += 3 * 4096
				}
				if what != "lsi" && what != "nodes" {
					free += 3 * 4096
				}
				if truth {
					free += 4 * 4096
				}
				b := budget(t, free)
				var out bytes.Buffer
				rows, err := Run(context.Background(), f.cat, Options{What: what, Format: format, TrueLabels: truth, Part: p, To: &out, Budget: b})
				if err != nil {
					t.Fatalf("%s as %s, part %v: %v", what, format, p, err)
				}
				if b.Free() != free {
					t.Errorf("%s as %s, part %v: %d bytes of the budget were not given back", what, format, p, free-b.Free())
				}
				return out.Bytes(), rows
			}
			whole, all := export(share.Part{}, 16<<20)
			head, body, _ := bytes.Cut(whole, []byte("\n"))
			want := decode(t, format, whole)
			for _, n := range []int{1, 2, 3, 60} {
				for _, free := range []int64{16 << 20, 6 * 4096} {
					var text []byte
					var lines []string
					var sum, most int64
					for i := 1; i <= n; i++ {
						part, rows := export(share.Part{I: i, N: n}, free)
						if format == "csv" {
							first, rest, _ := bytes.Cut(part, []byte("\n"))
							if !bytes.Equal(first, head) {
								t.Fatalf("%s: part %d of %d begins with %q", what, i, n, first)
							}
							text = append(text, rest...)
						} else if got := decode(t, format, part); int64(len(got)) != rows {
							t.Fatalf("%s as %s: part %d of %d has %d rows and counts %d", what, format, i, n, len(got), rows)
						} else {
							lines = append(lines, got...)
						}
						sum, most = sum+rows, max(most, rows)
					}
					if format == "csv" && !bytes.Equal(text, body) || format != "csv" && !slices.Equal(lines, want) || sum != all {
						t.Errorf("%s as %s: %d parts with %d rows of %d are not the whole", what, format, n, sum, all)
					}
					// The edges of one node stay together.
					if even := all/int64(n) + 1; what != "edges" && most > even || most > even+nodes {
						t.Errorf("%s: one of %d parts has %d rows of %d", what, n, most, all)
					}
					if n == 60 {
						break
					}
				}
			}
		}
	}
}

func TestPartsThatCannotBe(t *testing.T) {
	f := newFixture(t)
	for _, o := range []Options{
		{What: Submission, Format: SubmissionFormat, Part: share.Part{I: 1, N: 2}},
		{What: "lsi", Format: "csv", Part: share.Part{I: 3, N: 2}},
	} {
		o.To, o.Budget = io.Discard, budget(t, 1<<20)
		if _, err := Run(context.Background(), f.cat, o); !errors.Is(err, ErrOption) {
			t.Errorf("part %v of %s: %v", o.Part, o.What, err)
		}
	}
}

// rowsOf is a run directory with one file of smoothed rows, and nothing else.
func rowsOf(t *testing.T, store storage.Store, rows, width int) (*catalog.Catalog, catalog.Entry) {
	t.Helper()
	ctx := context.Background()
	cat, err := catalog.Open(ctx, store)
	must(t, err)
	file, err := cat.Create(ctx, catalog.Describe(catalog.KindSmoothed, "smoothed/part-00000.arrow").In(0))
	must(t, err)
	w, err := shards.NewRowWriter(file, shards.RowSchema{Column: "feature", Width: width}, nil)
	must(t, err)
	ids, values := make([]int64, rows), make([]float32, rows*width)
	for i := range ids {
		ids[i] = int64(i * 7 % rows) // no multiple of 7
	}
	for i := range values {
		values[i] = float32(i)
	}
	must(t, w.Write(ids, nil, values))
	_, err = w.Close()
	must(t, err)
	file.Rows = int64(rows)
	must(t, cat.Commit(ctx, file))
	return cat, cat.Entries(catalog.KindSmoothed)[0]
}

// A part whose rows fit the budget reads ids, and rows once, also to verify them.
func TestRowsOfAPartAreReadOnce(t *testing.T) {
	const rows, width = 20_000, 32
	store := &byName{Store: storagetest.NewMem(), read: map[string]int64{}}
	cat, e := rowsOf(t, store, rows, width)
	for _, p := range []share.Part{{}, {I: 1, N: 4}, {I: 4, N: 4}} {
		clear(store.read)
		n, err := Run(context.Background(), cat, Options{What: "smoothed", Format: "npy", Part: p, To: io.Discard, Budget: budget(t, 16<<20)})
		must(t, err)
		if lo, hi := p.Range(rows); n != hi-lo {
			t.Errorf("part %v has %d rows", p, n)
		}
		if read, once := store.read[e.Path], e.Bytes+8*rows; read < once || read > once+64<<10 {
			t.Errorf("part %v: %d bytes were read of a file of %d with %d of ids", p, read, e.Bytes, 8*rows)
		}
	}
}

// Whichever byte of a file of rows is changed, a part names the file, and leaves none of its own.
func TestDamageIsFoundByParts(t *testing.T) {
	store := storagetest.NewMem()
	cat, e := rowsOf(t, store, 500, 3)
	out := filepath.Join(t.TempDir(), "out.npy")
	for at := int64(0); at < e.Bytes; at += 97 {
		must(t, store.FlipByte(e.Path, at))
		_, err := Run(context.Background(), cat, Options{What: "smoothed", Format: "npy", Part: share.Part{I: 2, N: 3}, Out: out, Budget: budget(t, 1<<20)})
		if !errors.Is(err, seal.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), e.Path) {
			t.Errorf("byte %d of %d: %v", at, e.Bytes, err)
		}
		must(t, store.FlipByte(e.Path, at))
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
