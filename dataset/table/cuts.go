package table

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"ndls/dataset/source"
)

// unitBytes is the length of the parts into which a text file is cut; tests have shorter ones.
var unitBytes int64 = 8 << 20

// cuts finds where the parts of a text file begin that can be read by themselves. A part
// begins behind the first line end at or after a multiple of unitBytes. A line end inside of
// quotes is none: whether it is inside is known from the number of quotes before it, which is
// odd there. So what comes before a part has to be read once, and its quotes and line ends
// counted, before the part can be read. A file with quotes in other places than CSV allows is
// refused where the parser finds the first of them, and parts before that begin where they
// should.
type cuts struct {
	src    *source.Source
	quoted bool // line ends may be in quotes
	whole  bool // the file is one part

	mu    sync.Mutex
	parts []mark // nil until they are looked for
}

// mark is the place where a part begins.
type mark struct {
	off   int64
	lines int // before it
}

// memory implements rowSource: a line is small.
func (c *cuts) memory([]int) int64 { return 0 }

// units returns the number of parts of the file: one if it cannot be read from the middle.
func (c *cuts) units() int {
	if c.whole || !c.src.Cuttable() {
		return 1
	}
	return int(max(c.src.Size/unitBytes, 1))
}

// open opens a part, without a byte order mark.
func (c *cuts) open(ctx context.Context, unit int) (*source.Lines, error) {
	if c.units() == 1 {
		return source.OpenLines(ctx, c.src)
	}
	parts, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	open := source.OpenLines
	if unit > 0 {
		open = func(ctx context.Context, src *source.Source) (*source.Lines, error) {
			return source.OpenLinesAt(ctx, src, parts[unit].off)
		}
	}
	l, err := open(ctx, c.src)
	if err != nil {
		return nil, err
	}
	l.Before(int64(parts[unit].lines))
	if unit+1 < len(parts) {
		l.Stop = parts[unit+1].off
	}
	return l, nil
}

// find returns where all parts begin.
func (c *cuts) find(ctx context.Context) (parts []mark, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts != nil {
		return c.parts, nil
	}
	st, err := c.src.OpenText(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	parts = make([]mark, 1, c.units())
	s := scan{quoted: c.quoted}
	buf := make([]byte, source.BufferSize)
	for len(parts) < cap(parts) {
		n, err := st.Read(buf)
		if err != nil && err != io.EOF {
			return nil, err
		}
		for b := buf[:n]; len(b) > 0 && len(parts) < cap(parts); {
			if before := int64(len(parts))*unitBytes - s.off; before > 0 {
				k := min(before, int64(len(b)))
				s.pass(b[:k])
				b = b[k:]
				continue
			}
			var found bool
			if b, found = s.toLineEnd(b); found {
				for len(parts) < cap(parts) && int64(len(parts))*unitBytes <= s.off {
					parts = append(parts, mark{s.off, s.lines})
				}
			}
		}
		if err == io.EOF {
			break
		}
	}
	for len(parts) < cap(parts) { // the last line is long
		parts = append(parts, mark{c.src.Size, s.lines})
	}
	c.parts = parts
	return parts, nil
}

// scan goes through a text.
type scan struct {
	quoted bool
	inside bool // of quotes
	off    int64
	lines  int // that have ended
}

// pass goes past some bytes.
func (s *scan) pass(b []byte) {
	s.off += int64(len(b))
	s.lines += bytes.Count(b, []byte{'\n'})
	if s.quoted && bytes.Count(b, []byte{'"'})%2 == 1 {
		s.inside = !s.inside
	}
}

// toLineEnd goes past the first line end outside of quotes and returns what is left, nothing if
// there is none.
func (s *scan) toLineEnd(b []byte) (rest []byte, found bool) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			end = len(b)
		}
		s.pass(b[:end])
		if b[end-1] == '\n' && !s.inside {
			return b[end:], true
		}
		b = b[end:]
	}
	return nil, false
}
