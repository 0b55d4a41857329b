package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"ndls/dataset/graph"
)

func gzipOf(data string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(data))
	_ = z.Close()
	return b.String()
}

// TestCopyPipe copies what programs write to pipes, and finds out what it is.
func TestCopyPipe(t *testing.T) {
	for _, c := range []struct{ name, data, ext string }{
		{"fifo", "0 1\n", ""},
		{"63", gzipOf("0 1\n"), ".gz"},
		{"63", gzipOf("\x93NUMPY\x01\x00"), ".npy.gz"},
		{"63", gzipOf(gzipOf("0 1\n")), ".gz"},
		{"e.CSV", "\x93NUMPY", ".csv"},
		{"e.csv.gz", "0 1\n", ".csv.gz"},
		{"63", "PAR1rest", ".parquet"},
		{"63", "ARROW1", ".arrow"},
		{"63", "%%MatrixMarket matrix", ".mtx"},
		{"63", "PK\x03\x04\x14\x00\x00\x00\x08\x00data.npy", ".npz"},
		{"63", "PK\x03\x04\x14\x00\x00\x00\x08\x00e.csv", ".zip"},
		{"63", "\x1f\x8bno", ".gz"},
		{"63", "BZ", ""},
	} {
		pipe := filepath.Join(t.TempDir(), c.name)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if !IsPipe(pipe) || IsPipe(filepath.Dir(pipe)) {
			t.Error("a pipe is none, or a folder is one")
		}
		wrote := make(chan error, 1)
		go func() { wrote <- os.WriteFile(pipe, []byte(c.data), 0) }()
		to := filepath.Join(t.TempDir(), "copy")
		got, err := CopyPipe(t.Context(), pipe, to)
		if err != nil || <-wrote != nil {
			t.Fatal(err)
		}
		sum := xxh3.HashString128(c.data).Bytes()
		data, err := os.ReadFile(to)
		if err != nil || string(data) != c.data || got.Ext != c.ext || got.Size != int64(len(c.data)) || got.Digits() != hex.EncodeToString(sum[:]) {
			t.Errorf("%s %.20q: %+v, %v", c.name, c.data, got, err)
		}
	}
	if _, err := CopyPipe(t.Context(), os.DevNull, filepath.Join(t.TempDir(), "copy")); !errors.Is(err, graph.ErrData) {
		t.Errorf("nothing: %v", err)
	}
}

// TestCopyPipeEnds waits for a pipe to which nobody writes, and one that does not end.
func TestCopyPipeEnds(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, written := range []string{"", "0 1\n"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if written != "" {
			go func() {
				if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
					_, _ = f.WriteString(written)
					<-ctx.Done()
					time.Sleep(100 * time.Millisecond)
					_ = f.Close()
				}
			}()
		}
		if _, err := CopyPipe(ctx, pipe, filepath.Join(t.TempDir(), "copy")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
	}
}
