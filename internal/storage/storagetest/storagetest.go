// Package storagetest is the contract of a storage.Store as tests, run by every
// implementation, and an S3 server to run them against, behind a proxy that breaks
// requests. For other tests it has a store in memory, and one that fails an operation.
package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"ndls/internal/storage"
)

// Run checks the stores that open returns, an empty one at each call.
func Run(t *testing.T, open func(t *testing.T) storage.Store) { run(t, open, false) }

// RunRemote is Run, of several checks at once, for stores that may hide attempts from List, and whose
// readers may fail once their file is replaced.
func RunRemote(t *testing.T, open func(t *testing.T) storage.Store) { run(t, open, true) }

func run(t *testing.T, open func(t *testing.T) storage.Store, remote bool) {
	for name, check := range map[string]func(*testing.T, storage.Store){
		"commit publishes":         commitPublishes,
		"uncommitted is invisible": func(t *testing.T, s storage.Store) { uncommittedIsInvisible(t, s, remote) },
		"abort leaves nothing":     abortLeavesNothing,
		"replace is atomic":        func(t *testing.T, s storage.Store) { replaceIsAtomic(t, s, remote) },
		"create new":               createNew,
		"create new races":         createNewRaces,
		"sizes and offsets":        sizesAndOffsets,
		"large file":               largeFile,
		"concurrent readers":       concurrentReaders,
		"list":                     list,
		"remove":                   remove,
		"missing files":            missingFiles,
		"bad names":                badNames,
		"cancelled context":        cancelledContext,
		"concurrent use":           concurrentUse,
	} {
		t.Run(name, func(t *testing.T) {
			if remote {
				t.Parallel() // they wait for the server
			}
			check(t, open(t))
		})
	}
}

// Write commits data under name.
func Write(t testing.TB, s storage.Store, name string, data []byte) storage.Digest {
	t.Helper()
	d, err := write(s, name, data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(s storage.Store, name string, data []byte) (storage.Digest, error) {
	w, err := s.Create(context.Background(), name)
	return fill(w, err, data)
}

func writeNew(s storage.Store, name string, data []byte) (storage.Digest, error) {
	w, err := s.CreateNew(context.Background(), name)
	return fill(w, err, data)
}

func fill(w storage.Writer, err error, data []byte) (storage.Digest, error) {
	if err != nil {
		return storage.Digest{}, err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return storage.Digest{}, err
	}
	return w.Commit(context.Background())
}

// Read returns the bytes of a committed file.
func Read(t testing.TB, s storage.Store, name string) []byte {
	t.Helper()
	data, err := read(s, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(s storage.Store, name string) ([]byte, error) {
	r, err := s.Open(context.Background(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	if n, err := r.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	return data, nil
}

func random(n int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func commitPublishes(t *testing.T, s storage.Store) {
	data := []byte("some bytes")
	sum := sha256.Sum256(data)
	want := storage.Digest{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	if d := Write(t, s, "a/b/file", data); d != want {
		t.Errorf("digest %+v, want %+v", d, want)
	}
	if got := Read(t, s, "a/b/file"); !bytes.Equal(got, data) {
		t.Errorf("read %q, want %q", got, data)
	}
	info, err := s.Stat(context.Background(), "a/b/file")
	if want := (storage.Info{Name: "a/b/file", Size: 10}); err != nil || info != want {
		t.Errorf("stat %+v, %v, want %+v", info, err, want)
	}
}

func uncommittedIsInvisible(t *testing.T, s storage.Store, remote bool) {
	w, err := s.Create(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write(random(3 << 20)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(context.Background(), "f"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("open gives %v, want ErrNotExist", err)
	}
	infos, err := s.List(context.Background(), "")
	if remote && err == nil && len(infos) == 0 {
		return
	}
	if err != nil || len(infos) != 1 || !infos[0].Attempt || !strings.HasPrefix(infos[0].Name, "f") {
		t.Fatalf("list gives %+v, %v, want one attempt at f", infos, err)
	}
	if _, err := s.Open(context.Background(), infos[0].Name); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("open of the attempt gives %v, want ErrNotExist", err)
	}
}

func abortLeavesNothing(t *testing.T, s storage.Store) {
	w, err := s.Create(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	if infos, err := s.List(context.Background(), ""); err != nil || len(infos) != 0 {
		t.Errorf("list gives %+v, %v, want nothing", infos, err)
	}
	if _, err := w.Commit(context.Background()); err == nil {
		t.Error("commit after abort succeeds")
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("write after abort succeeds")
	}
}

func replaceIsAtomic(t *testing.T, s storage.Store, remote bool) {
	Write(t, s, "f", []byte("old"))
	old, err := s.Open(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	w, err := s.Create(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("newer")); err != nil {
		t.Fatal(err)
	}
	if got := Read(t, s, "f"); string(got) != "old" {
		t.Errorf("before commit: %q, want the old bytes", got)
	}
	if _, err := w.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if got := Read(t, s, "f"); string(got) != "newer" {
		t.Errorf("after commit: %q, want the new bytes", got)
	}
	got := make([]byte, 3)
	_, err = old.ReadAt(got, 0)
	if failed := err != nil && err != io.EOF; failed && !remote || !failed && string(got) != "old" {
		t.Errorf("open reader sees %q, %v, want the old bytes", got, err)
	}
}

func createNew(t *testing.T, s storage.Store) {
	ctx := context.Background()
	late, err := s.CreateNew(ctx, "journal/1")
	if err != nil {
		t.Fatal(err)
	}
	defer late.Abort()
	if _, err := late.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("first"))
	want := storage.Digest{Bytes: 5, SHA256: hex.EncodeToString(sum[:])}
	if d, err := writeNew(s, "journal/1", []byte("first")); err != nil || d != want {
		t.Fatalf("first attempt: %+v, %v, want %+v", d, err, want)
	}
	if _, err := late.Commit(ctx); !errors.Is(err, storage.ErrExist) || !strings.Contains(err.Error(), "journal/1") {
		t.Errorf("attempt begun before: %v, want ErrExist and the name", err)
	}
	for _, data := range [][]byte{[]byte("second"), []byte("first"), nil, random(6 << 20)} {
		if _, err := writeNew(s, "journal/1", data); !errors.Is(err, storage.ErrExist) {
			t.Errorf("attempt with %d bytes: %v, want ErrExist", len(data), err)
		}
	}
	if got := Read(t, s, "journal/1"); string(got) != "first" {
		t.Errorf("file has %d bytes, want the first attempt's", len(got))
	}
	infos, err := s.List(ctx, "")
	if err != nil || len(infos) != 1 {
		t.Errorf("list gives %+v, %v, want the file alone", infos, err)
	}
	if err := s.Remove(ctx, "journal/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := writeNew(s, "journal/1", []byte("again")); err != nil {
		t.Errorf("after removal: %v", err)
	}
	w, err := s.CreateNew(ctx, "journal/2")
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := s.Stat(ctx, "journal/2"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("after abort: %v, want ErrNotExist", err)
	}
}

// createNewRaces has attempts with the same bytes too, which no comparison of
// contents tells apart.
func createNewRaces(t *testing.T, s storage.Store) {
	for size, racers := range map[int]int{1: 16, 5<<20 + 1: 4} {
		name := fmt.Sprintf("journal/%d", size)
		won := make([]bool, racers)
		start := make(chan struct{})
		var g errgroup.Group
		for i := range racers {
			g.Go(func() error {
				data := bytes.Repeat([]byte{byte(i / 2)}, size)
				<-start
				_, err := writeNew(s, name, data)
				won[i] = err == nil
				if errors.Is(err, storage.ErrExist) {
					return nil
				}
				return err
			})
		}
		close(start)
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			t.Fatalf("%d bytes: winners %v, want one", size, won)
		}
		if got := Read(t, s, name); !bytes.Equal(got, bytes.Repeat([]byte{byte(winner / 2)}, size)) {
			t.Errorf("file has bytes of another attempt than %d", winner)
		}
	}
}

func sizesAndOffsets(t *testing.T, s storage.Store) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5<<20 + 123} {
		data := random(size)
		name := fmt.Sprintf("size-%d", size)
		if d := Write(t, s, name, data); d.Bytes != int64(size) {
			t.Errorf("%s: %d bytes committed", name, d.Bytes)
		}
		r, err := s.Open(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		if r.Size() != int64(size) {
			t.Errorf("%s: size %d", name, r.Size())
		}
		for _, off := range []int{0, 1, 4095, 4096, size / 2, size - 1, size, size + 1, size + 5000} {
			for _, n := range []int{0, 1, 4096, 70_000, size} {
				if whole := n == size && off > 1; off >= 0 && !whole {
					readAt(t, r, name, data, off, n)
				}
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
			t.Errorf("%s: read at a negative offset succeeds", name)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func readAt(t *testing.T, r storage.Reader, name string, data []byte, off, n int) {
	t.Helper()
	got := make([]byte, n)
	m, err := r.ReadAt(got, int64(off))
	want := data[min(off, len(data)):min(off+n, len(data))]
	if !bytes.Equal(got[:m], want) {
		t.Errorf("%s: %d bytes at %d are wrong (%d came)", name, n, off, m)
	}
	if short := len(want) < n; short && err != io.EOF || !short && err != nil && err != io.EOF {
		t.Errorf("%s: %d bytes at %d: error %v", name, n, off, err)
	}
}

// largeFile writes in pieces of odd sizes, enough for several parts of an upload.
func largeFile(t *testing.T, s storage.Store) {
	data := random(12<<20 + 345)
	w, err := s.Create(context.Background(), "large")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for at, n := 0, 1; at < len(data); at, n = at+n, n*3+1 {
		n = min(n, len(data)-at)
		if m, err := w.Write(data[at : at+n]); err != nil || m != n {
			t.Fatalf("wrote %d of %d bytes, %v", m, n, err)
		}
	}
	sum := sha256.Sum256(data)
	want := storage.Digest{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	if d, err := w.Commit(context.Background()); err != nil || d != want {
		t.Fatalf("commit: %+v, %v, want %+v", d, err, want)
	}
	if got := Read(t, s, "large"); !bytes.Equal(got, data) {
		t.Error("other bytes come back")
	}
}

func concurrentReaders(t *testing.T, s storage.Store) {
	data := random(3 << 20)
	Write(t, s, "f", data)
	r, err := s.Open(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			for off := i * 1001; off < len(data); off += 800_000 {
				got := make([]byte, min(500_000, len(data)-off))
				if n, err := r.ReadAt(got, int64(off)); n < len(got) || !bytes.Equal(got, data[off:off+n]) {
					return fmt.Errorf("reader %d at %d: %d bytes, %w", i, off, n, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func list(t *testing.T, s storage.Store) {
	for _, name := range []string{"b/2", "a", "b/1", "bc"} {
		Write(t, s, name, []byte(name))
	}
	for prefix, want := range map[string][]string{
		"":   {"a", "b/1", "b/2", "bc"},
		"b":  {"b/1", "b/2", "bc"},
		"b/": {"b/1", "b/2"},
		"z":  nil,
	} {
		infos, err := s.List(context.Background(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range infos {
			got = append(got, i.Name)
			if i.Size != int64(len(i.Name)) || i.Attempt {
				t.Errorf("list: %+v", i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("list %q gives %q, want %q", prefix, got, want)
		}
	}
}

func remove(t *testing.T, s storage.Store) {
	ctx := context.Background()
	Write(t, s, "d/f", []byte("x"))
	w, err := s.Create(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range append(infos, storage.Info{Name: "never/was"}) {
		if err := s.Remove(ctx, i.Name); err != nil {
			t.Errorf("remove %s: %v", i.Name, err)
		}
	}
	w.Abort()
	if infos, err := s.List(ctx, ""); err != nil || len(infos) != 0 {
		t.Errorf("list gives %+v, %v, want nothing", infos, err)
	}
	if _, err := s.Stat(ctx, "d/f"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("stat gives %v, want ErrNotExist", err)
	}
}

func missingFiles(t *testing.T, s storage.Store) {
	ctx := context.Background()
	Write(t, s, "folder/f", nil)
	for _, name := range []string{"no", "no/such", "folder", "folder/f2"} {
		if _, err := s.Open(ctx, name); !errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("open %s gives %v, want ErrNotExist and the name", name, err)
		}
		if _, err := s.Stat(ctx, name); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("stat %s gives %v, want ErrNotExist", name, err)
		}
	}
}

func badNames(t *testing.T, s storage.Store) {
	ctx := context.Background()
	for _, name := range []string{"", ".", "..", "../x", "/x", "a//b", "a/", "a/../../b"} {
		if _, err := s.Create(ctx, name); err == nil {
			t.Errorf("create %q succeeds", name)
		}
		if _, err := s.CreateNew(ctx, name); err == nil {
			t.Errorf("create new %q succeeds", name)
		}
		if _, err := s.Open(ctx, name); err == nil {
			t.Errorf("open %q succeeds", name)
		}
		if err := s.Remove(ctx, name); err == nil {
			t.Errorf("remove %q succeeds", name)
		}
	}
	if _, err := s.Create(ctx, "x.tmp"); err == nil {
		t.Error("create of a name that attempts have succeeds")
	}
	if _, err := s.CreateNew(ctx, "x.tmp"); err == nil {
		t.Error("create new of a name that attempts have succeeds")
	}
}

func cancelledContext(t *testing.T, s storage.Store) {
	Write(t, s, "f", []byte("x"))
	w, err := s.Create(context.Background(), "g")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := s.CreateNew(context.Background(), "h")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, create := s.Create(ctx, "h")
	_, createNew := s.CreateNew(ctx, "h")
	_, open := s.Open(ctx, "f")
	_, stat := s.Stat(ctx, "f")
	_, list := s.List(ctx, "")
	_, commit := w.Commit(ctx)
	_, commitNew := fresh.Commit(ctx)
	for what, err := range map[string]error{
		"create": create, "open": open, "stat": stat, "list": list, "commit": commit,
		"create new": createNew, "commit new": commitNew, "remove": s.Remove(ctx, "f"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s gives %v, want context.Canceled", what, err)
		}
	}
	if infos, err := s.List(context.Background(), ""); err != nil || len(infos) != 1 {
		t.Errorf("list gives %+v, %v, want f alone", infos, err)
	}
}

func concurrentUse(t *testing.T, s storage.Store) {
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			name, data := fmt.Sprintf("dir/%d", i), random(100_000+i)
			if _, err := write(s, name, data); err != nil {
				return err
			}
			if _, err := write(s, "dir/shared", data); err != nil {
				return err
			}
			got, err := read(s, name)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("%s has other bytes", name)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if infos, err := s.List(context.Background(), ""); err != nil || len(infos) != 9 {
		t.Errorf("list gives %d files, %v, want 9", len(infos), err)
	}
}
