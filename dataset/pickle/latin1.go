package pickle

import (
	"bufio"
	"fmt"
	"io"
)

// Latin1Reader reads UTF-8 text from r and returns each character as the byte
// of its number. A character above 255 is an error that wraps [ErrFormat].
func Latin1Reader(r io.Reader) io.Reader { return &latin1{r: bufio.NewReaderSize(r, 64<<10)} }

type latin1 struct{ r *bufio.Reader }

func (l *latin1) Read(p []byte) (int, error) {
	for n := range p {
		c, err := l.r.ReadByte()
		if err == nil && c >= 0x80 {
			c, err = l.second(c)
		}
		if err != nil {
			return n, err
		}
		p[n] = c
	}
	return len(p), nil
}

// second reads the other byte of a character from U+0080 to U+00FF.
func (l *latin1) second(first byte) (byte, error) {
	c, err := l.r.ReadByte()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && (first != 0xc2 && first != 0xc3 || c&0xc0 != 0x80) {
		err = fmt.Errorf("%w: text that is not latin1 in UTF-8", ErrFormat)
	}
	return first<<6 | c&0x3f, err
}
