package keysort

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"ndls/internal/extsort"
	"ndls/internal/seal"
)

// A run is written in blocks of blockBytes, the last one shorter, which end with the CRC-32C of
// the bytes before it.
const (
	blockBytes = 64 << 10
	sumBytes   = 4
)

// runWriter writes a run.
type runWriter struct {
	s     *Sorter
	f     *extsort.Spill
	block []byte
	size  int64
}

func (s *Sorter) newRun() (*runWriter, error) {
	f, err := s.scratch.Create()
	if err != nil {
		return nil, err
	}
	return &runWriter{s: s, f: f, block: make([]byte, 0, blockBytes)}, nil
}

func (w *runWriter) write(key []byte, times uint32) error {
	var head [2 * binary.MaxVarintLen32]byte
	n := binary.PutUvarint(head[:], uint64(len(key)))
	n += binary.PutUvarint(head[n:], uint64(times))
	if err := w.put(head[:n]); err != nil {
		return err
	}
	return w.put(key)
}

func (w *runWriter) put(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), blockBytes-sumBytes-len(w.block))
		w.block, p = append(w.block, p[:n]...), p[n:]
		if len(w.block) == blockBytes-sumBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *runWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	w.block = binary.LittleEndian.AppendUint32(w.block, crc32.Checksum(w.block, seal.Castagnoli))
	w.size += int64(len(w.block))
	err := w.f.Write(w.block)
	w.block = w.block[:0]
	return err
}

func (w *runWriter) abort() { w.f.Abort() }

// finish hands the run to the sorter.
func (w *runWriter) finish() error {
	if err := w.flush(); err != nil {
		w.abort()
		return err
	}
	f, err := w.f.Finish()
	if err != nil {
		return err
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.runs = append(w.s.runs, &storedRun{f: f, size: w.size})
	return nil
}

// run gives the keys of a run in ascending order.
type run interface {
	// next moves to the next key; ok is false at the end.
	next() (key []byte, times uint32, ok bool, err error)
}

// memoryRun is the sorted keys of an adder.
type memoryRun struct {
	a *Adder
	i int
}

func (r *memoryRun) next() ([]byte, uint32, bool, error) {
	if r.i == r.a.n {
		return nil, 0, false, nil
	}
	at := r.a.entries.S[r.i].record()
	r.i++
	return r.a.key(at), r.a.times(at), true, nil
}

// storedRun is a run in a scratch file. It is read once.
type storedRun struct {
	f        *extsort.Spilled
	size     int64
	block    []byte // the one that was read last, without its checksum
	at       int    // in block
	upcoming int    // block
	in       *bufio.Reader
	key      []byte
}

// Read implements io.Reader over the blocks.
func (r *storedRun) Read(p []byte) (int, error) {
	if r.at == len(r.block) {
		off := int64(r.upcoming) * blockBytes
		if off >= r.size {
			return 0, io.EOF
		}
		r.block, r.at = r.block[:min(blockBytes, r.size-off)], 0
		if n, err := r.f.ReadAt(r.block, off); n < len(r.block) {
			return 0, r.f.ReadError(err)
		}
		end := len(r.block) - sumBytes
		sum := binary.LittleEndian.Uint32(r.block[end:])
		if r.block = r.block[:end]; crc32.Checksum(r.block, seal.Castagnoli) != sum {
			return 0, fmt.Errorf("read back the scratch file %s: the bytes from %d on are not those that were written: the disk is failing, choose another scratch folder: %w",
				r.f.Name(), off, seal.ErrCorrupt)
		}
		r.upcoming++
		r.f.Drop(off)
	}
	n := copy(p, r.block[r.at:])
	r.at += n
	return n, nil
}

func (r *storedRun) next() ([]byte, uint32, bool, error) {
	if r.in == nil {
		r.block = make([]byte, 0, blockBytes)
		r.in = bufio.NewReaderSize(r, 4<<10)
	}
	length, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return nil, 0, false, nil
	}
	times, err2 := binary.ReadUvarint(r.in)
	if err == nil {
		err = err2
	}
	if err != nil || length > maxKey {
		return nil, 0, false, r.f.ReadError(err)
	}
	if uint64(cap(r.key)) < length {
		r.key = make([]byte, length)
	}
	r.key = r.key[:length]
	if _, err := io.ReadFull(r.in, r.key); err != nil {
		return nil, 0, false, r.f.ReadError(err)
	}
	return r.key, uint32(times), true, nil
}
