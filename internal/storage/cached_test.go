package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

const cachedFile = 1 << 20

// folderBytes returns the size of the copies in a cache's folder.
func folderBytes(t *testing.T, dir string) int64 {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.ndls-copy"))
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		sum += st.Size()
	}
	return sum
}

func wantHolds(t *testing.T, c *storage.Cached, want ...string) {
	t.Helper()
	if got := c.Holds(); !slices.Equal(got, want) {
		t.Errorf("cache holds %q, want %q", got, want)
	}
}

func digestOf(data []byte) storage.Digest {
	sum := sha256.Sum256(data)
	return storage.Digest{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// readCopy reads a file with these bytes through a cache.
func readCopy(t *testing.T, c *storage.Cached, name string, want []byte) {
	t.Helper()
	r, err := c.OpenDigest(context.Background(), name, digestOf(want))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, len(want))
	if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has other bytes, %v", name, err)
	}
}

// TestCachedDownloadsOnce: however many open a file at once, however often.
func TestCachedDownloadsOnce(t *testing.T) {
	remote := storage.NewCounting(storagetest.NewMem())
	data := random(cachedFile)
	storagetest.Write(t, remote, "f", data)
	c := newCached(t, remote, t.TempDir(), 2*cachedFile)
	for range 3 {
		var g errgroup.Group
		for range 8 {
			g.Go(func() error {
				r, err := c.OpenDigest(context.Background(), "f", digestOf(data))
				if err != nil {
					return err
				}
				defer r.Close()
				got := make([]byte, len(data))
				if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
					return fmt.Errorf("other bytes come back, %w", err)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if remote.BytesRead() != cachedFile {
		t.Errorf("%d bytes were read from the store, want one copy", remote.BytesRead())
	}
	wantHolds(t, c, "f")
}

func TestCachedStaysWithinItsLimit(t *testing.T) {
	remote := storagetest.NewMem()
	for _, name := range []string{"a", "b", "c", "d"} {
		storagetest.Write(t, remote, name, random(cachedFile))
	}
	storagetest.Write(t, remote, "large", random(3*cachedFile+1))
	dir := t.TempDir()
	c := newCached(t, remote, dir, 3*cachedFile)
	file := random(cachedFile)
	open := func(name string) storage.Reader {
		t.Helper()
		r, err := c.OpenDigest(context.Background(), name, digestOf(file))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	inUse := open("a")
	for _, name := range []string{"b", "c", "b"} {
		readCopy(t, c, name, file)
	}
	wantHolds(t, c, "a", "b", "c")
	readCopy(t, c, "d", file) // a is open and b was used after c
	wantHolds(t, c, "a", "b", "d")
	readCopy(t, c, "large", random(3*cachedFile+1))
	wantHolds(t, c, "a", "b", "d")
	readers := []storage.Reader{inUse, open("b"), open("d")}
	readCopy(t, c, "c", file) // with every copy in use
	wantHolds(t, c, "a", "b", "d")
	if got := folderBytes(t, dir); got > 3*cachedFile {
		t.Errorf("copies take %d bytes, more than the limit", got)
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		_ = r.Close() // must not count twice
	}
	for _, name := range []string{"c", "a", "b", "d", "c"} {
		readCopy(t, c, name, file)
	}
	wantHolds(t, c, "b", "c", "d")
	if got := folderBytes(t, dir); got != 3*cachedFile {
		t.Errorf("copies take %d bytes, want all of the limit", got)
	}
}

// TestCachedIsNeverStale: a file that was replaced or removed in the store comes
// from there, and whoever has the old one open keeps it.
func TestCachedIsNeverStale(t *testing.T) {
	ctx := context.Background()
	remote := storagetest.NewMem()
	was := storagetest.Write(t, remote, "f", []byte("old"))
	c := newCached(t, remote, t.TempDir(), 100)
	old, err := c.OpenDigest(ctx, "f", was)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	storagetest.Write(t, remote, "f", []byte("new"))
	if got := storagetest.Read(t, c, "f"); string(got) != "new" {
		t.Errorf("got %q", got)
	}
	readCopy(t, c, "f", []byte("new"))
	got := make([]byte, 3)
	if _, err := old.ReadAt(got, 0); err != nil || string(got) != "old" {
		t.Errorf("the open reader gives %q, %v", got, err)
	}
	ours := storagetest.Write(t, c, "f", []byte("ours"))
	readCopy(t, c, "f", []byte("ours"))
	if err := c.Remove(ctx, "f"); err != nil {
		t.Error(err)
	}
	wantHolds(t, c)
	if _, err := c.OpenDigest(ctx, "f", ours); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a removed file: %v, want ErrNotExist", err)
	}
}

func TestCachedSurvivesRestarts(t *testing.T) {
	mem := storagetest.NewMem()
	remote := storage.NewCounting(mem)
	for _, name := range []string{"a", "b", "c", "cut", "unnoted", "garbled"} {
		storagetest.Write(t, remote, name, random(cachedFile))
	}
	dir := t.TempDir()
	foreign := filepath.Join(dir, "notes.json")
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := newCached(t, remote, dir, 6*cachedFile)
	if _, err := storage.NewCached(remote, dir, 1); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second cache in the folder: %v", err)
	}
	for _, name := range []string{"a", "b", "c", "cut", "unnoted", "garbled"} {
		readCopy(t, c, name, random(cachedFile))
		time.Sleep(2 * time.Millisecond) // the folder remembers the order by time
	}
	readCopy(t, c, "a", random(cachedFile))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, dir)
	storagetest.Write(t, mem, "b", random(cachedFile+1))

	before := remote.BytesRead()
	c = newCached(t, remote, dir, 6*cachedFile)
	wantHolds(t, c, "a", "b", "c")
	if got := folderBytes(t, dir); got != 3*cachedFile {
		t.Errorf("copies take %d bytes after damage, want 3 files", got)
	}
	for _, name := range []string{"a", "c"} {
		readCopy(t, c, name, random(cachedFile))
	}
	if got := remote.BytesRead() - before; got != 0 {
		t.Errorf("%d bytes were read from the store again", got)
	}
	readCopy(t, c, "b", random(cachedFile+1)) // replaced since
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = newCached(t, remote, dir, 2*cachedFile+1) // less than before
	wantHolds(t, c, "b", "c")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// Another store's files of the same names are others.
	c = newCached(t, storagetest.NewFaulty(newLocal(t), 0), dir, 6*cachedFile)
	wantHolds(t, c)
	if text, err := os.ReadFile(foreign); err != nil || string(text) != "mine" {
		t.Errorf("a file of somebody else: %q, %v", text, err)
	}
}

// damage cuts, loses and garbles what the copies named so left in the folder.
func damage(t *testing.T, dir string) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(dir, "*.ndls-copy.json"))
	if err != nil || len(notes) != 6 {
		t.Fatalf("%d notes, %v", len(notes), err)
	}
	for _, path := range notes {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch note := string(text); {
		case strings.Contains(note, `"cut"`):
			err = os.Truncate(strings.TrimSuffix(path, ".json"), 100)
		case strings.Contains(note, `"unnoted"`):
			err = os.Remove(path)
		case strings.Contains(note, `"garbled"`):
			err = os.WriteFile(path, text[:len(text)/2], 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCachedOpenDigest(t *testing.T) {
	ctx := context.Background()
	mem := storagetest.NewMem()
	asked := storagetest.NewFaulty(mem, 0)
	c := newCached(t, asked, t.TempDir(), 100)
	want := storagetest.Write(t, mem, "f", []byte("bytes"))
	open := func(s storage.Store, want storage.Digest) ([]byte, error) {
		r, err := storage.OpenDigest(ctx, s, "f", want)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		got := make([]byte, r.Size())
		_, err = r.ReadAt(got, 0)
		return got, err
	}
	if got, err := open(mem, want); err != nil || string(got) != "bytes" {
		t.Errorf("a store without copies gives %q, %v", got, err)
	}
	for i := range 2 {
		if got, err := open(c, want); err != nil || string(got) != "bytes" {
			t.Errorf("time %d: %q, %v", i, got, err)
		}
	}
	before := asked.Ops()
	for _, s := range []storage.Store{c, storage.NewCounting(c)} {
		if _, err := open(s, want); err != nil || asked.Ops() != before {
			t.Errorf("a copy costs %d operations of the store, %v", asked.Ops()-before, err)
		}
	}
	if err := mem.FlipByte("f", 2); err != nil {
		t.Fatal(err)
	}
	if got, err := open(c, want); err != nil || string(got) != "bytes" {
		t.Errorf("the copy of the right bytes gives %q, %v", got, err)
	}
	other := digestOf([]byte("other"))
	longer := storage.Digest{Bytes: 6, SHA256: want.SHA256}
	for _, d := range []storage.Digest{other, longer, want} {
		if _, err := open(c, d); !errors.Is(err, storage.ErrDigest) || !strings.Contains(err.Error(), "f") {
			t.Errorf("bytes that are not there: %v, want ErrDigest and the name", err)
		}
	}
	wantHolds(t, c)
}

// TestCachedFailsCleanly fails each operation of the store below an open, one at
// a time.
func TestCachedFailsCleanly(t *testing.T) {
	mem := storagetest.NewMem()
	storagetest.Write(t, mem, "f", random(cachedFile))
	for at := int64(1); ; at++ {
		dir := t.TempDir()
		faulty := storagetest.NewFaulty(mem, at)
		c := newCached(t, faulty, dir, cachedFile)
		r, err := c.OpenDigest(context.Background(), "f", digestOf(random(cachedFile)))
		if err == nil {
			_ = r.Close()
			if at <= 2 {
				t.Errorf("only %d operations", faulty.Ops())
			}
			return
		}
		if !errors.Is(err, storage.ErrDisk) {
			t.Errorf("failure %d: %v", at, err)
		}
		if left := folderBytes(t, dir); left != 0 {
			t.Errorf("failure %d leaves %d bytes", at, left)
		}
		readCopy(t, c, "f", random(cachedFile))
		wantHolds(t, c, "f") // so its space was free
	}
}

func TestCachedCopiesFromS3(t *testing.T) {
	server := startServer(t)
	data := random(9<<20 + 7)
	digest := storagetest.Write(t, openBucket(t, server, "p"), "f", data)
	ranges := 0
	choose := storagetest.Seeded(3)
	_, u := storagetest.StartProxy(t, server, func(r *http.Request) storagetest.Fault {
		if r.Header.Get("Range") != "" {
			ranges++
			if ranges%4 != 0 {
				return storagetest.Truncate
			}
		}
		return choose(r)
	})
	c := newCached(t, openBucket(t, u, "p"), t.TempDir(), 10<<20)
	readCopy(t, c, "f", data)
	before := ranges
	r, err := storage.OpenDigest(context.Background(), c, "f", digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if ranges != before || before < 4 {
		t.Errorf("%d ranges for the copy and %d after it, want a few and none", before, ranges-before)
	}
	wantHolds(t, c, "f")
}
