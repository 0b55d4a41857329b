package source

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"

	"ndls/internal/rng"
)

// digestOf is the digest by its definition.
func digestOf(text []byte) string {
	sum := new(big.Int)
	for n := 0; n*digestBlock < len(text); n++ {
		block := text[n*digestBlock : min((n+1)*digestBlock, len(text))]
		hash := xxh3.Hash128Seed(block, uint64(n)).Bytes()
		sum.Add(sum, new(big.Int).SetBytes(hash[:]))
	}
	return fmt.Sprintf("xxh3-256k:%032x", sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128)))
}

// TestDigest gives a sum bytes in portions and orders of all kinds, some more than once, by several threads.
func TestDigest(t *testing.T) {
	for _, size := range []int{0, 1, digestBlock - 1, digestBlock, digestBlock + 1, 5*digestBlock + 4711} {
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(rng.Hash(uint64(i)))
		}
		s := NewSum(Input{Size: int64(size)})
		var threads sync.WaitGroup
		for thread := range uint64(3) {
			threads.Go(func() {
				for i := range uint64(20) {
					lo := int(rng.Hash(thread, i) % uint64(size+1))
					hi := lo + int(rng.Hash(thread, i, 1)%uint64(size-lo+1))
					s.Add(int64(lo), text[lo:hi])
				}
			})
		}
		threads.Wait()
		lacked := 0
		for first, last := range s.Missing() {
			s.Add(first, text[first:last])
			lacked++
		}
		for first, last := range s.Missing() {
			t.Errorf("%d bytes: bytes %d to %d are still missing", size, first, last)
		}
		if got, want := s.Text(), digestOf(text); got != want {
			t.Errorf("%d bytes, %d stretches read at the end: %s, want %s", size, lacked, got, want)
		}
	}
}

// TestSumsOfReads notes what is read of a file, until the file is another one.
func TestSumsOfReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	text := bytes.Repeat([]byte("0123456789abcdef"), 3*digestBlock/16)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var sums Sums
	read := func(from, to int) *Sum {
		t.Helper()
		var files Files
		defer func() { _ = files.Close() }()
		f, err := files.OpenFile(path)
		if err == nil {
			err = files.NoteIn(&sums)
		}
		if err == nil {
			_, err = f.ReadAt(make([]byte, to-from), int64(from))
		}
		in, statErr := Stat(path)
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		return sums.Of(in)
	}
	missing := func(s *Sum) (bytes int64) {
		for first, last := range s.Missing() {
			bytes += last - first
		}
		return bytes
	}
	if got := missing(read(100, 2*digestBlock)); got != 2*digestBlock {
		t.Errorf("%d bytes are missing, want the first and the last block", got)
	}
	if s := read(0, digestBlock); missing(s) != digestBlock {
		t.Errorf("%d bytes are missing, want the last block", missing(s))
	}
	if s := read(2*digestBlock, 3*digestBlock); missing(s) != 0 || s.Text() != digestOf(text) {
		t.Errorf("%d bytes are missing; %s, want %s", missing(s), s.Text(), digestOf(text))
	}
	if err := os.WriteFile(path, text[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if s := read(0, digestBlock); missing(s) != int64(len(text)-1-digestBlock) {
		t.Errorf("%d bytes of another file are missing", missing(s))
	}
}
