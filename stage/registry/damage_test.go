package registry

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
)

// Whatever file is damaged, the error says which stage wrote it and what to do.
func TestExplain(t *testing.T) {
	for _, k := range kinds {
		e := catalog.Describe(k.Name, "some/file")
		e.Stage = string(k.Stage)
		shard := catalog.Describe(catalog.KindEdges, "some/shard")
		for _, files := range [][]catalog.Entry{{e}, {e, shard}} {
			cat := catalog.NewView(storagetest.NewMem(), files, nil)
			err := Explain(fmt.Errorf("worker: %w", seal.Corrupt("some/file", "byte %d", 7)), cat)
			text := failure.Text(err)
			want := "ndls " + Verb(k.Stage) + " "
			if len(files) > 1 && (k.Name == catalog.KindHops || k.Name == catalog.KindReversedHops) {
				want = "remove it and repeat the command"
			}
			if !errors.Is(err, seal.ErrCorrupt) || !strings.HasPrefix(text, "some/file is damaged: byte 7; ") || !strings.Contains(text, want) {
				t.Errorf("%s: %s", k.Name, text)
			}
			if again := Explain(err, cat); again != err {
				t.Errorf("%s: explained twice: %v", k.Name, again)
			}
		}
	}
	cat := catalog.NewView(storagetest.NewMem(), nil, nil)
	for _, err := range []error{nil, io.EOF, seal.Corrupt("other", "byte 7")} {
		if got := Explain(err, cat); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	if Verb(control.Predict) != "train" {
		t.Error("no verb predicts alone")
	}
}
