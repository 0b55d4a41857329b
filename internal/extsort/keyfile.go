package extsort

import (
	"fmt"
	"hash/crc32"
	"io"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

// blockKeys is how many keys share a checksum: half of minRunBuffer.
const blockKeys = minRunBuffer / 2 / 8

// blockSums gathers the checksums of blocks of keys.
type blockSums struct {
	sums []uint32
	keys int64
}

// add takes the next keys.
func (b *blockSums) add(keys []uint64) {
	for len(keys) > 0 {
		if b.keys%blockKeys == 0 {
			b.sums = append(b.sums, 0)
		}
		n := min(int64(len(keys)), blockKeys-b.keys%blockKeys)
		last := &b.sums[len(b.sums)-1]
		*last = crc32.Update(*last, seal.Castagnoli, mem.AsBytes(keys[:n]))
		b.keys += n
		keys = keys[n:]
	}
}

// KeyWriter writes a scratch file of keys.
type KeyWriter struct {
	f *Spill
	blockSums
}

// CreateKeys starts a scratch file of keys.
func (s *Scratch) CreateKeys() (*KeyWriter, error) {
	f, err := s.Create()
	if err != nil {
		return nil, err
	}
	return &KeyWriter{f: f}, nil
}

// Write appends keys.
func (w *KeyWriter) Write(keys []uint64) error {
	w.add(keys)
	return w.f.Write(mem.AsBytes(keys))
}

// Abort removes the file.
func (w *KeyWriter) Abort() { w.f.Abort() }

// Finish ends the writing and opens the file for reading.
func (w *KeyWriter) Finish() (*KeyFile, error) {
	f, err := w.f.Finish()
	if err != nil {
		return nil, err
	}
	return &KeyFile{f: f, sums: w.sums, keys: w.keys}, nil
}

func (w *KeyWriter) finishRun() (Run, error) {
	r, err := w.Finish()
	if err != nil {
		return nil, err // a nil *KeyFile would be a Run that is not nil
	}
	return r, nil
}

// KeyFile is a scratch file of keys. It is a Run: it is read once, and what was
// read is taken off the disk.
type KeyFile struct {
	f    *Spilled
	sums []uint32
	keys int64
	at   int64 // keys that were read
}

// Keys implements Run.
func (r *KeyFile) Keys() int64 { return r.keys - r.at }

// Fill implements Run.
func (r *KeyFile) Fill(keys []uint64) (int, error) {
	n := min(r.Keys(), int64(len(keys))/blockKeys*blockKeys)
	if n == 0 {
		return 0, io.EOF
	}
	got := keys[:n]
	if read, err := r.f.ReadAt(mem.AsBytes(got), r.at*8); read < len(got)*8 {
		return 0, r.f.ReadError(err)
	}
	for i := range (len(got) + blockKeys - 1) / blockKeys {
		block := got[i*blockKeys : min((i+1)*blockKeys, len(got))]
		if crc32.Checksum(mem.AsBytes(block), seal.Castagnoli) != r.sums[r.at/blockKeys+int64(i)] {
			return 0, fmt.Errorf("read back the scratch file %s: the bytes from %d on are not those that were written: the disk is failing, choose another scratch folder: %w",
				r.f.Name(), (r.at/blockKeys+int64(i))*blockKeys*8, seal.ErrCorrupt)
		}
	}
	r.at += n
	r.f.Drop(r.at * 8)
	return int(n), nil
}

// Close gives the disk space back.
func (r *KeyFile) Close() { r.f.Close() }
