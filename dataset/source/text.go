package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"ndls/dataset/graph"
)

// Text reads a source as text in UTF-8. It decodes a source that has another encoding, and refuses bytes that are no
// text, with their line. A carriage return that no line feed follows becomes a line feed, so that lines of old
// Macintosh programs end; no byte changes its place.
type Text struct {
	source *Source
	ctx    context.Context
	st     *Stream
	in     io.Reader // of st, decoded
	off    int64     // of the next byte
	inside bool      // the reading began at some byte, which may be inside of a character
	tail   []byte    // the first bytes of a character that goes on
	ahead  byte      // the byte that follows, where it was read to tell what a carriage return is
	held   bool      // there is one
	err    error     // what comes behind the bytes that were given
}

// OpenText opens a source as text from byte off on. A file that is no text by its first bytes is refused.
func (s *Source) OpenText(ctx context.Context, off int64) (_ *Text, err error) {
	st, err := s.Open(ctx, off)
	if err != nil {
		return nil, err
	}
	t := &Text{source: s, ctx: ctx, st: st, in: st, off: off, inside: off > 0, tail: make([]byte, 0, utf8.UTFMax)}
	if off == 0 {
		head := make([]byte, Sniffed)
		n, err := io.ReadFull(st, head)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, errors.Join(err, st.Close())
		}
		if err := refuse(s.Name, head[:n], s.Encoding); err != nil {
			return nil, errors.Join(err, st.Close())
		}
		t.in = io.MultiReader(bytes.NewReader(head[:n]), st)
	}
	if s.Encoding != nil {
		t.in = transform.NewReader(t.in, s.Encoding.form.NewDecoder())
	}
	return t, nil
}

// Close closes the source.
func (t *Text) Close() error { return t.st.Close() }

// Read implements io.Reader.
func (t *Text) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if t.held {
		p[0], t.held, n = t.ahead, false, 1
	}
	if t.err == nil && n < len(p) {
		var k int
		k, t.err = t.in.Read(p[n:])
		n += k
	}
	if n == 0 {
		if t.err == io.EOF && len(t.tail) > 0 {
			t.err = t.refused(t.off-int64(len(t.tail)), t.tail[0])
		}
		return 0, t.err
	}
	for p[n-1] == '\r' && !t.held && t.err == nil {
		var one [1]byte
		var k int
		k, t.err = t.in.Read(one[:])
		t.ahead, t.held = one[0], k == 1
	}
	if i := t.bad(p[:n]); i >= 0 {
		b := p[i]
		if i == 0 && len(t.tail) > 0 { // of a character whose first bytes were given before
			b = t.tail[0]
		}
		t.err, t.held = t.refused(t.off+int64(i), b), false
		n = i
	}
	t.endLines(p[:n])
	t.off += int64(n)
	if n == 0 {
		return 0, t.err
	}
	return n, nil
}

// endLines replaces carriage returns that no line feed follows.
func (t *Text) endLines(p []byte) {
	for i := bytes.IndexByte(p, '\r'); i >= 0; {
		if i+1 < len(p) && p[i+1] != '\n' || i+1 == len(p) && !(t.held && t.ahead == '\n') {
			p[i] = '\n'
		}
		next := bytes.IndexByte(p[i+1:], '\r')
		if next < 0 {
			return
		}
		i += 1 + next
	}
}

// replaced stands for bytes that an encoding does not have.
const replaced = "\xef\xbf\xbd"

// bad returns where the first byte is that is no text, -1 if all are. It remembers a character that goes on behind p.
func (t *Text) bad(p []byte) int {
	decoded := t.source.Encoding != nil && !t.source.Encoding.known
	from := 0
	if t.inside {
		for from < len(p) && from < utf8.UTFMax-1 && !utf8.RuneStart(p[from]) {
			from++
		}
		t.inside = false
	}
	for len(t.tail) > 0 && from < len(p) && !utf8.FullRune(t.tail) {
		t.tail = append(t.tail, p[from])
		from++
	}
	if len(t.tail) > 0 {
		if !utf8.FullRune(t.tail) {
			return -1
		}
		if r, size := utf8.DecodeRune(t.tail); r == utf8.RuneError && (size == 1 || decoded) {
			return 0
		}
		t.tail = t.tail[:0]
	}
	end := len(p)
	var open []byte
	for k := 1; k < utf8.UTFMax && k <= len(p)-from; k++ {
		if b := p[len(p)-k:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				end -= k
				open = b
			}
			break
		}
	}
	first := bytes.IndexByte(p, 0)
	if decoded {
		if i := bytes.Index(p[from:end], []byte(replaced)); i >= 0 && (first < 0 || from+i < first) {
			first = from + i
		}
	}
	if utf8.Valid(p[from:end]) {
		if first < 0 {
			t.tail = append(t.tail, open...)
		}
		return first
	}
	for i := from; i < end && (first < 0 || i < first); {
		r, size := utf8.DecodeRune(p[i:end])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return first
}

// refused is the error for a byte that is no text.
func (t *Text) refused(off int64, b byte) error {
	where := t.source.Name + " line " + strconv.FormatInt(1+t.source.countLines(t.ctx, off), 10)
	switch e := t.source.Encoding; {
	case b == 0:
		return graph.BadData(where, "holds a byte of 0, which is in no text: the file is damaged, or UTF-16 (write encoding=utf-16 in the URI)")
	case e != nil:
		return graph.BadData(where, "holds bytes that %s does not have: name the encoding of the file with encoding=", e.name)
	}
	return graph.BadData(where, "is not UTF-8 (byte 0x%02x): save the file as UTF-8, or name its encoding in the URI, such as encoding=latin-1 or encoding=windows-1252", b)
}
