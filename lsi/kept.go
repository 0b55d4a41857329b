package lsi

import (
	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
)

// keptShare is the part of the free budget that kept data may use to stay in memory.
const keptShare = 4

// kept holds data between passes: in memory if they take a small part of what is free, else in a scratch file.
type kept struct {
	memory *mem.Array[byte]
	file   *direct.Scratch
}

// newKept makes room for so many bytes. Offsets and lengths are multiples of direct.Align.
func newKept(g hops.Graph, bytes int64, what string) (k kept, err error) {
	if bytes <= (g.Budget.Free()-hops.ReadBytes)/keptShare {
		k.memory, err = mem.Alloc[byte](g.Budget, bytes, what)
	} else {
		k.file, err = direct.NewScratch(g.Scratch)
	}
	return k, err
}

func (k kept) read(p []byte, at int64) error {
	if k.file != nil {
		return k.file.ReadAt(p, at)
	}
	copy(p, k.memory.S[at:])
	return nil
}

func (k kept) write(p []byte, at int64) error {
	if k.file != nil {
		return k.file.WriteAt(p, at)
	}
	copy(k.memory.S[at:], p)
	return nil
}

// close frees memory or disk space. k may be zero.
func (k kept) close() {
	k.memory.Free()
	if k.file != nil {
		_ = k.file.Close()
	}
}
