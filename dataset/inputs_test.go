package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
)

// TestInputs lists the files of each kind of URI, each with what a change of it
// changes.
func TestInputs(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{
		"e.csv": []byte("src,dst\n0,1\n"), "f.csv": []byte("0,1\n1,2\n"), "l.csv": []byte("id,label\n0,a\n"), "g.npz": triangle(),
	})
	set := "edges:" + dir + "/e.csv?features=" + dir + "/f.csv&labels=" + dir + "/l.csv&splits=" + dir + "/l.csv"
	for _, c := range []struct {
		uri  string
		o    Options
		want []string
	}{
		{set, Options{}, []string{"f.csv", "l.csv", "e.csv"}},
		{set, Options{NoFeatures: true}, []string{"l.csv", "e.csv"}},
		{"npz:" + dir + "/g.npz", Options{}, []string{"g.npz"}},
		{"karate:", Options{}, nil},
		{"synthetic:nodes=10", Options{}, nil},
	} {
		inputs, err := Inputs(t.Context(), c.uri, c.o)
		if err == nil {
			err = Digest(t.Context(), inputs)
		}
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, in := range inputs {
			names = append(names, filepath.Base(in.Path))
			data, err := os.ReadFile(in.Path)
			if err != nil {
				t.Fatal(err)
			}
			if sum := fmt.Sprintf("xxh3-256k:%x", xxh3.Hash128(data).Bytes()); in.Digest != sum || in.Size != int64(len(data)) || time.Since(in.Modified) > time.Hour {
				t.Errorf("%s: %+v, digest %s", c.uri, in, sum)
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: %v, want %v", c.uri, names, c.want)
		}
	}
	if _, err := Inputs(t.Context(), "npz:"+dir+"/none.npz", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestDigestNoticesChanges(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"e.txt": []byte("0 1\n1 2\n")})
	path := filepath.Join(dir, "e.txt")
	before, err := Inputs(t.Context(), "edges:"+path, Options{})
	if err == nil {
		err = Digest(t.Context(), before)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("0 1\n1 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, before[0].Modified.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := Digest(t.Context(), slices.Clone(before)); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "e.txt: it changed") {
		t.Errorf("a file of another time: %v", err)
	}
	after, err := Inputs(t.Context(), "edges:"+path, Options{})
	if err == nil {
		err = Digest(t.Context(), after)
	}
	if err != nil || after[0].Size != before[0].Size || after[0].Digest == before[0].Digest || after[0].Modified.Equal(before[0].Modified) {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Digest(ctx, after); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
