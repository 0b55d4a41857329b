package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	// Magic begins every NumPy array file.
	Magic = "\x93NUMPY"
	// MaxHeader is the largest header that is read. NumPy itself writes 64 KiB at
	// most unless told otherwise.
	MaxHeader = 64 << 10
)

// ErrFormat reports a file that is no NumPy array or whose header is damaged.
var ErrFormat = errors.New("not a NumPy array file")

// Header describes an array.
type Header struct {
	// Descr is the element type as NumPy spells it, for example "<f4".
	Descr   string
	Fortran bool
	Shape   []int64
	// Size is the length of the header itself in bytes: the offset of the first
	// element.
	Size int64
}

// Read reads a header from the front of r and nothing behind it. A source that
// is no array gives [ErrFormat].
func Read(r io.Reader) (Header, error) {
	var prefix [12]byte
	if _, err := io.ReadFull(r, prefix[:8]); err != nil {
		return Header{}, damaged("the file ends before its header", err)
	}
	if string(prefix[:6]) != Magic {
		return Header{}, damaged("the first bytes are not the NumPy magic", nil)
	}
	size, prefixSize := 0, 10
	switch prefix[6] {
	case 1:
		if _, err := io.ReadFull(r, prefix[8:10]); err != nil {
			return Header{}, damaged("the file ends before its header", err)
		}
		size = int(binary.LittleEndian.Uint16(prefix[8:]))
	case 2, 3:
		if _, err := io.ReadFull(r, prefix[8:12]); err != nil {
			return Header{}, damaged("the file ends before its header", err)
		}
		size, prefixSize = int(binary.LittleEndian.Uint32(prefix[8:])), 12
	default:
		return Header{}, damaged(fmt.Sprintf("format version %d.%d is unknown", prefix[6], prefix[7]), nil)
	}
	if size > MaxHeader {
		return Header{}, damaged(fmt.Sprintf("its header claims %d bytes", size), nil)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return Header{}, damaged("the file ends within its header", err)
	}
	h, err := parse(string(text))
	h.Size = int64(prefixSize + size)
	return h, err
}

func damaged(reason string, err error) error {
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("npy: read header: %w", err)
	}
	return fmt.Errorf("%w: %s", ErrFormat, reason)
}

// parse reads the dictionary {'descr': …, 'fortran_order': …, 'shape': …}.
func parse(text string) (Header, error) {
	var h Header
	s := scanner{rest: text}
	s.expect("{")
	seen := map[string]bool{}
	for s.err == nil && !s.accept("}") {
		key := s.quoted()
		s.expect(":")
		if seen[key] {
			s.fail("key " + strconv.Quote(key) + " twice")
		}
		seen[key] = true
		switch key {
		case "descr":
			h.Descr = s.descr()
		case "fortran_order":
			h.Fortran = s.accept("True")
			if !h.Fortran {
				s.expect("False")
			}
		case "shape":
			h.Shape = s.tuple()
		default:
			s.fail("unknown key " + strconv.Quote(key))
		}
		if !s.accept(",") {
			s.expect("}")
			break
		}
	}
	if s.err == nil && len(seen) != 3 {
		s.fail("descr, fortran_order and shape are needed")
	}
	if s.err == nil && strings.TrimSpace(s.rest) != "" {
		s.fail("text after the dictionary")
	}
	if s.err == nil {
		if _, ok := h.items(); !ok {
			s.fail(fmt.Sprintf("shape %v is too large", h.Shape))
		}
	}
	return h, s.err
}

// scanner walks over the literal; after an error it does nothing.
type scanner struct {
	rest string
	err  error
}

func (s *scanner) fail(reason string) {
	if s.err == nil {
		s.err = damaged("header: "+reason, nil)
	}
}

func (s *scanner) accept(token string) bool {
	trimmed := strings.TrimLeft(s.rest, " \n\t")
	rest, ok := strings.CutPrefix(trimmed, token)
	if ok && s.err == nil {
		s.rest = rest
		return true
	}
	return false
}

func (s *scanner) expect(token string) {
	if !s.accept(token) {
		s.fail("expected " + token)
	}
}

func (s *scanner) quoted() string {
	quote := "'"
	if !s.accept(quote) {
		quote = `"`
		s.expect(quote)
	}
	text, rest, ok := strings.Cut(s.rest, quote)
	if !ok || s.err != nil {
		s.fail("unfinished string")
		return ""
	}
	s.rest = rest
	return text
}

// descr reads a type: a string, or the list that spells a structured type,
// which is kept as text for the message.
func (s *scanner) descr() string {
	if !s.accept("[") {
		return s.quoted()
	}
	depth := 1
	for i, c := range s.rest {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			text := "[" + s.rest[:i+1]
			s.rest = s.rest[i+1:]
			return text
		}
	}
	s.fail("unfinished list")
	return ""
}

func (s *scanner) tuple() []int64 {
	shape := []int64{}
	s.expect("(")
	for s.err == nil && !s.accept(")") {
		s.rest = strings.TrimLeft(s.rest, " ")
		end := 0
		for end < len(s.rest) && s.rest[end] >= '0' && s.rest[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(s.rest[:end], 10, 64)
		if err != nil {
			s.fail("shape holds no number")
			break
		}
		s.rest = s.rest[end:]
		s.accept("L") // Python 2 wrote long integers so.
		shape = append(shape, n)
		if !s.accept(",") {
			s.expect(")")
			break
		}
	}
	return shape
}

// items is the number of elements; ok is false where the bytes of the array
// would not fit 62 bits.
func (h Header) items() (n int64, ok bool) {
	n = 1
	for _, d := range h.Shape {
		if d == 0 {
			return 0, true
		}
		if d < 0 || n > math.MaxInt64>>6/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// Items is the number of elements.
func (h Header) Items() int64 {
	n, _ := h.items()
	return n
}

// ByColumns says that an array of two dimensions is stored column by column. Where one of
// them is at most 1, the order makes no difference.
func (h Header) ByColumns() bool {
	return h.Fortran && len(h.Shape) == 2 && h.Shape[0] > 1 && h.Shape[1] > 1
}

// CheckOrder refuses an array of more than two dimensions in Fortran order.
func (h Header) CheckOrder() error {
	if h.Fortran && len(h.Shape) > 2 {
		return fmt.Errorf("shape %v in Fortran order: save numpy.ascontiguousarray(a) instead", h.Shape)
	}
	return nil
}

// Write writes the header of an array in C order, padded so that its elements
// start at a multiple of 64 bytes.
func Write(w io.Writer, t Type, shape ...int64) error {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.FormatInt(d, 10)
	}
	tuple := strings.Join(dims, ", ")
	if len(shape) == 1 {
		tuple += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", t, tuple)
	pad := 64 - (10+len(text)+1)%64
	text += strings.Repeat(" ", pad%64) + "\n"
	head := append([]byte(Magic), 1, 0, byte(len(text)), byte(len(text)>>8))
	if _, err := w.Write(append(head, text...)); err != nil {
		return fmt.Errorf("npy: write header: %w", err)
	}
	return nil
}
