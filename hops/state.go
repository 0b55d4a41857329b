package hops

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"ndls/internal/seal"
	"ndls/spmv"
)

const (
	stateMagic   = "ndlshops"
	stateVersion = 1
	// frameBytes is the largest payload of a frame; mostHeader is the largest size of a header.
	frameBytes = 1 << 18
	mostHeader = 1 << 20
)

// StateWriter writes a state front to back.
type StateWriter struct {
	w     io.Writer
	frame []byte // head and payload
	sum   uint32
}

const frameHead = 8

// NewStateWriter writes a header, encoded as JSON. The caller calls Close to end the state; Close does not close w.
func NewStateWriter(w io.Writer, header any) (*StateWriter, error) {
	raw, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("header of a state: %w", err)
	}
	s := &StateWriter{w: w, frame: make([]byte, frameHead, frameHead+frameBytes)}
	if _, err := w.Write(binary.LittleEndian.AppendUint32([]byte(stateMagic), stateVersion)); err != nil {
		return nil, fmt.Errorf("writing a state: %w", err)
	}
	if err := s.Put(binary.LittleEndian.AppendUint32(nil, uint32(len(raw)))); err != nil {
		return nil, err
	}
	return s, s.Put(raw)
}

// Put writes bytes.
func (s *StateWriter) Put(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), cap(s.frame)-len(s.frame))
		s.frame = append(s.frame, p[:n]...)
		p = p[n:]
		if len(s.frame) == cap(s.frame) {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the frame: its length, the checksum of all payload so far, and the payload.
func (s *StateWriter) flush() error {
	s.sum = crc32.Update(s.sum, seal.Castagnoli, s.frame[frameHead:])
	binary.LittleEndian.PutUint32(s.frame, uint32(len(s.frame)-frameHead))
	binary.LittleEndian.PutUint32(s.frame[4:], s.sum)
	_, err := s.w.Write(s.frame)
	s.frame = s.frame[:frameHead]
	if err != nil {
		return fmt.Errorf("writing a state: %w", err)
	}
	return nil
}

// Panels writes the first panels, one after the other, of rows of stride bytes; a panel's part of a row has size bytes.
func (s *StateWriter) Panels(rows []byte, stride, size, panels int) error {
	if stride == size {
		return s.Put(rows)
	}
	for g := range panels {
		for at := g * size; at < len(rows); at += stride {
			if err := s.Put(rows[at : at+size]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Block writes the first panels of a block.
func (s *StateWriter) Block(b *spmv.Block, panels int) error {
	return b.Export(func(_ int64, rows spmv.Rows) error {
		raw, stride, size := rows.Bytes()
		return s.Panels(raw, stride, size, panels)
	})
}

// Before writes the first panels of the rows before those of a block, which a walk that recurs reads.
func (s *StateWriter) Before(b *spmv.Block, panels int) error {
	return b.ExportBefore(func(_ int64, rows spmv.Rows) error {
		raw, stride, size := rows.Bytes()
		return s.Panels(raw, stride, size, panels)
	})
}

// Close ends the state with an empty frame.
func (s *StateWriter) Close() error {
	if len(s.frame) > frameHead {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.flush()
}

// StateReader reads a state front to back. Its errors wrap ErrState, except read errors of its source.
type StateReader struct {
	r      io.Reader
	buf    []byte
	left   []byte // unread part of the frame
	sum    uint32
	ended  bool
	header []byte
}

// NewStateReader reads the header.
func NewStateReader(r io.Reader) (*StateReader, error) {
	s := &StateReader{r: r, buf: make([]byte, frameBytes)}
	head := s.buf[:len(stateMagic)+4]
	if err := s.full(head); err != nil {
		return nil, err
	}
	if string(head[:len(stateMagic)]) != stateMagic {
		return nil, fmt.Errorf("not written by this program: %w", ErrState)
	}
	if v := binary.LittleEndian.Uint32(head[len(stateMagic):]); v != stateVersion {
		return nil, fmt.Errorf("format version %d, this program reads %d: %w", v, stateVersion, ErrState)
	}
	var size [4]byte
	if err := s.Fill(size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > mostHeader {
		return nil, fmt.Errorf("header of %d bytes: %w", n, ErrState)
	}
	s.header = make([]byte, n)
	return s, s.Fill(s.header)
}

// Header decodes the header.
func (s *StateReader) Header(to any) error {
	if err := json.Unmarshal(s.header, to); err != nil {
		return fmt.Errorf("header: %w: %w", err, ErrState)
	}
	return nil
}

// full reads len(p) bytes of the file.
func (s *StateReader) full(p []byte) error {
	_, err := io.ReadFull(s.r, p)
	switch {
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the state is cut off: %w", ErrState)
	case err != nil:
		return fmt.Errorf("reading a state: %w", err)
	}
	return nil
}

// next reads a frame.
func (s *StateReader) next() error {
	if s.ended {
		return fmt.Errorf("the state ends early: %w", ErrState)
	}
	head := s.buf[:frameHead]
	if err := s.full(head); err != nil {
		return err
	}
	n, want := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if n > frameBytes {
		return fmt.Errorf("frame of %d bytes: %w", n, ErrState)
	}
	s.left = s.buf[:n]
	if err := s.full(s.left); err != nil {
		return err
	}
	if s.sum = crc32.Update(s.sum, seal.Castagnoli, s.left); s.sum != want {
		return fmt.Errorf("checksum %08x, not %08x: %w", s.sum, want, ErrState)
	}
	s.ended = n == 0
	return nil
}

// take returns the next bytes, at least one and at most n.
func (s *StateReader) take(n int64) ([]byte, error) {
	for len(s.left) == 0 {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	part := s.left[:min(n, int64(len(s.left)))]
	s.left = s.left[len(part):]
	return part, nil
}

// Fill reads len(p) bytes.
func (s *StateReader) Fill(p []byte) error {
	for len(p) > 0 {
		part, err := s.take(int64(len(p)))
		if err != nil {
			return err
		}
		p = p[copy(p, part):]
	}
	return nil
}

// Skip passes over n bytes.
func (s *StateReader) Skip(n int64) error {
	for n > 0 {
		part, err := s.take(n)
		if err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}

// Panels reads what [StateWriter.Panels] wrote of held panels. Panels [first, last) become the first of rows; others of rows become zero.
func (s *StateReader) Panels(rows []byte, stride, size, held, first, last int) error {
	n := len(rows) / stride
	if (last-first)*size < stride {
		clear(rows)
	}
	if err := s.Skip(int64(first) * int64(n*size)); err != nil {
		return err
	}
	if stride == size {
		if err := s.Fill(rows); err != nil {
			return err
		}
	} else {
		for g := range last - first {
			for at := g * size; at < len(rows); at += stride {
				if err := s.Fill(rows[at : at+size]); err != nil {
					return err
				}
			}
		}
	}
	return s.Skip(int64(held-last) * int64(n*size))
}

// Block reads what [StateWriter.Block] wrote of held panels. Panels [first, last) become the first of b; others become zero.
func (s *StateReader) Block(b *spmv.Block, held, first, last int) error {
	return b.Import(func(_ int64, rows spmv.Rows) error {
		raw, stride, size := rows.Bytes()
		return s.Panels(raw, stride, size, held, first, last)
	})
}

// Before reads what [StateWriter.Before] wrote of held panels. Panels [first, last) become the first of the rows before those of b; others
// become zero.
func (s *StateReader) Before(b *spmv.Block, held, first, last int) error {
	return b.ImportBefore(func(_ int64, rows spmv.Rows) error {
		raw, stride, size := rows.Bytes()
		return s.Panels(raw, stride, size, held, first, last)
	})
}

// End returns an error unless the whole state was read.
func (s *StateReader) End() error {
	if len(s.left) == 0 && !s.ended {
		if err := s.next(); err != nil {
			return err
		}
	}
	if !s.ended {
		return fmt.Errorf("the state is longer than its header says: %w", ErrState)
	}
	if n, err := io.ReadFull(s.r, s.buf[:1]); n > 0 || err != io.EOF {
		return fmt.Errorf("bytes after the end of the state: %w", errors.Join(err, ErrState))
	}
	return nil
}
