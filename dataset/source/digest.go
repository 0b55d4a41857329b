package source

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"sync"

	"github.com/zeebo/xxh3"
)

// digestBlock is the size of the blocks of a file in its digest.
const digestBlock = 256 << 10

const digestPrefix = "xxh3-256k:"

// Digest identifies bytes: it is the sum, modulo 2^128, of the XXH3 hashes of 128 bits of all their blocks of 256 KiB, each with the number
// of the block, from 0, as the seed. Other bytes have another digest, unless somebody has made them so that they have the same.
type Digest struct{ hi, lo uint64 }

// add adds a block.
func (d *Digest) add(number int64, block []byte) { d.join(xxh3.Hash128Seed(block, uint64(number))) }

func (d *Digest) join(hash xxh3.Uint128) {
	var carry uint64
	d.lo, carry = bits.Add64(d.lo, hash.Lo, 0)
	d.hi, _ = bits.Add64(d.hi, hash.Hi, carry)
}

// Text returns the digest: a prefix and 32 digits.
func (d *Digest) Text() string { return fmt.Sprintf("%s%016x%016x", digestPrefix, d.hi, d.lo) }

// Sum makes the digest of a file. It takes blocks in any order, several threads may give it some, and each counts once.
type Sum struct {
	in Input // the file when the first block was read

	mu     sync.Mutex
	have   []uint64 // a bit for each block
	digest Digest
}

// NewSum returns the sum of a file of which nothing was read.
func NewSum(in Input) *Sum {
	blocks := (in.Size + digestBlock - 1) / digestBlock
	return &Sum{in: in, have: make([]uint64, (blocks+63)/64)}
}

// Add takes all whole blocks of the bytes p at off.
func (s *Sum) Add(off int64, p []byte) {
	for n := (off + digestBlock - 1) / digestBlock; ; n++ {
		first := n * digestBlock
		last := min(first+digestBlock, s.in.Size)
		if first >= last || last > off+int64(len(p)) {
			return
		}
		if !s.has(n) {
			s.add(n, xxh3.Hash128Seed(p[first-off:last-off], uint64(n)))
		}
	}
}

func (s *Sum) has(block int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.have[block/64]>>(block%64)&1 == 1
}

func (s *Sum) add(block int64, hash xxh3.Uint128) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bit := uint64(1) << (block % 64); s.have[block/64]&bit == 0 {
		s.have[block/64] |= bit
		s.digest.join(hash)
	}
}

// Missing returns the stretches of the file whose blocks the sum lacks, from first to below last.
func (s *Sum) Missing() iter.Seq2[int64, int64] {
	return func(yield func(first, last int64) bool) {
		blocks := (s.in.Size + digestBlock - 1) / digestBlock
		for n := int64(0); n < blocks; n++ {
			first := n
			for ; n < blocks && !s.has(n); n++ {
			}
			if n > first && !yield(first*digestBlock, min(n*digestBlock, s.in.Size)) {
				return
			}
		}
	}
}

// Text returns the digest once no block is missing.
func (s *Sum) Text() string { return s.digest.Text() }

// Sums holds the sums of files that datasets read, so that their digests need no second reading. The zero value is ready to use.
type Sums struct {
	mu    sync.Mutex
	files map[string]*Sum
}

// Of returns the sum of a file: another one than before if the file has changed.
func (s *Sums) Of(in Input) *Sum {
	if s == nil {
		return NewSum(in)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.files[in.Path]; known != nil && sameFile(known.in, in) {
		return known
	}
	if s.files == nil {
		s.files = map[string]*Sum{}
	}
	s.files[in.Path] = NewSum(in)
	return s.files[in.Path]
}

// sameFile reports whether the metadata of a file is as it was.
func sameFile(f, g Input) bool {
	return f.Size == g.Size && f.Modified.Equal(g.Modified) && f.Device == g.Device && f.Inode == g.Inode && f.Changed.Equal(g.Changed)
}

type sumsKey struct{}

// WithSums returns a context in which datasets note what they read in s.
func WithSums(ctx context.Context, s *Sums) context.Context {
	return context.WithValue(ctx, sumsKey{}, s)
}

// SumsOf returns the sums of a context, nil for none.
func SumsOf(ctx context.Context) *Sums {
	s, _ := ctx.Value(sumsKey{}).(*Sums)
	return s
}

// summedFile gives what is read of a file to its sum.
type summedFile struct {
	File
	sum *Sum // nil for none
}

// ReadAt implements io.ReaderAt.
func (f *summedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if f.sum != nil {
		f.sum.Add(off, p[:n])
	}
	return n, err
}

// NoteIn gives what is read of the files to their sums from now on.
func (fs *Files) NoteIn(s *Sums) error {
	fs.sums = s
	for _, f := range fs.opened {
		if err := fs.sumUp(f.File); err != nil {
			return err
		}
	}
	return nil
}

// sumUp gives what is read of a file to its sum. A file that is not of this machine has none.
func (fs *Files) sumUp(f File) error {
	summed, ok := f.(*summedFile)
	if !ok || fs.sums == nil {
		return nil
	}
	in, err := Stat(f.Name())
	if err == nil {
		summed.sum = fs.sums.Of(in)
	}
	return err
}
