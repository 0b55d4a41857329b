package artifacts

import (
	"testing"

	"ndls/internal/mem"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

func TestShards(t *testing.T) {
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Shards(t.Context(), storagetest.NewMem(), b, 70_000, 3000, shards.RowSchema{Column: "feature", Width: 20, Half: true}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if b.Free() != b.Limit() {
		t.Errorf("%d bytes of the budget did not come back", b.Limit()-b.Free())
	}
	if len(all) != 6 {
		t.Fatalf("%d measurements", len(all))
	}
	for i, m := range all {
		rows, least := int64(70_000), int64(70_000*3)
		if i >= 3 {
			rows, least = 3000, 3000*(8+2*20)
		}
		if m.Rows != rows || m.Bytes < least || m.Bytes > 3*least || len(m.Seconds) != 3 {
			t.Errorf("%+v", m)
		}
		for _, s := range m.Seconds {
			if s <= 0 {
				t.Errorf("%s took %v s", m.What, s)
			}
		}
	}
	if _, err := Shards(t.Context(), storagetest.NewMem(), b, 10, 10, shards.RowSchema{}, 1); err == nil {
		t.Error("rows without columns are measured")
	}
}

// newBudget is one in which so many bytes are free.
func newBudget(t *testing.T, free int64) *mem.Budget {
	t.Helper()
	b, err := mem.NewBudget(mem.Total(free))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b.Free() != free {
			t.Errorf("%d bytes of the budget did not come back", free-b.Free())
		}
	})
	return b
}
