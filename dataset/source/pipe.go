package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ndls/dataset/graph"
	"ndls/internal/direct"
)

// IsPipe reports whether a path names something that can be read only once, from its first byte on:
// a pipe, a device, or an open file of this process.
func IsPipe(path string) bool {
	for _, folder := range []string{"/dev/fd/", "/proc/self/fd/", "/dev/stdin"} {
		if strings.HasPrefix(path, folder) {
			return Exists(path)
		}
	}
	st, err := os.Stat(path)
	return err == nil && st.Mode()&(os.ModeNamedPipe|os.ModeCharDevice|os.ModeSocket) != 0
}

// PipeCopy holds what was read from a pipe.
type PipeCopy struct {
	Size int64
	// Digest identifies the bytes ([Digest]).
	Digest string
	// Ext is the end of a name that says what a file of these bytes is, such as ".npy.gz"; it is empty
	// for text.
	Ext string
}

// Digits returns the digits of the digest.
func (c PipeCopy) Digits() string { return strings.TrimPrefix(c.Digest, digestPrefix) }

// CopyPipe reads a pipe to its end and writes its bytes to a new file. It ends soon after ctx does.
func CopyPipe(ctx context.Context, path, to string) (c PipeCopy, err error) {
	in, err := openPipe(ctx, path)
	if err != nil {
		return c, err
	}
	defer func() { _ = in.Close() }()
	defer context.AfterFunc(ctx, func() { _ = in.Close() })() // ends a Read that waits
	out, err := direct.Create(to)
	if err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			out.Abort()
		}
	}()
	var digest Digest
	var head []byte
	buf := make([]byte, digestBlock)
	for block := int64(0); err == nil; block++ {
		var n int
		n, err = io.ReadFull(in, buf)
		if err := ctx.Err(); err != nil {
			return c, err
		}
		if block == 0 {
			head = bytes.Clone(buf[:n])
		}
		if n > 0 {
			digest.add(block, buf[:n])
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return c, err
		}
		c.Size += int64(n)
	}
	if err != io.EOF && err != io.ErrUnexpectedEOF {
		return c, graph.Damaged(path, err)
	}
	if c.Size == 0 {
		return c, graph.BadData(path, "is empty (0 bytes): the program that writes to it has written nothing")
	}
	c.Digest = digest.Text()
	if c.Ext = nameEnd(path); c.Ext == "" {
		c.Ext = contentEnd(head)
	}
	return c, out.FinishTemporary()
}

// openPipe opens a pipe, which waits for the program that writes to it.
func openPipe(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nameEnd is the end of the name of a pipe that says what comes from it, "" if it does not.
func nameEnd(path string) string {
	base := filepath.Base(path)
	ext := strings.ToLower(filepath.Ext(base))
	if ext == "" {
		return ""
	}
	if Packed(ext) {
		return strings.ToLower(filepath.Ext(strings.TrimSuffix(base, filepath.Ext(base)))) + ext
	}
	return ext
}

// contents are the first bytes of files that are read by the end of their names.
var contents = []struct{ first, ext string }{
	{"\x1f\x8b", ".gz"},
	{"\x28\xb5\x2f\xfd", ".zst"},
	{xzMagic, ".xz"},
	{"BZh", ".bz2"},
	{"\x04\x22\x4d\x18", ".lz4"},
	{"PAR1", ".parquet"},
	{"\x93NUMPY", ".npy"},
	{"ARROW1", ".arrow"},
	{"%%MatrixMarket", ".mtx"},
}

// contentEnd is the end of the name of a file that begins so, "" for text.
func contentEnd(head []byte) string {
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		if first := head[:min(len(head), 256)]; bytes.Contains(first, []byte(".npy")) {
			return ".npz"
		}
		return ".zip"
	}
	for _, c := range contents {
		if !bytes.HasPrefix(head, []byte(c.first)) {
			continue
		}
		unpack := unpackers[c.ext]
		if unpack == nil {
			return c.ext
		}
		inner := make([]byte, Sniffed)
		z, err := unpack(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			return c.ext
		}
		n, _ := io.ReadFull(z, inner) // the head may be cut off anywhere
		_ = z.Close()
		if end := contentEnd(inner[:n]); !Packed(end) && end != ".npz" {
			return end + c.ext
		}
		return c.ext
	}
	return ""
}

// errPipe is the error for a file that is none, where a dataset needs one.
func errPipe(path string) error {
	return graph.BadData(path, "is a pipe or a device, and is read more than once here: write it to a file first (an import reads the edges to number and sort them, and features and labels again later)")
}

// openFile opens a file past the page cache.
func openFile(path string) (File, error) {
	f, err := direct.Open(path)
	if err != nil {
		if IsPipe(path) && !errors.Is(err, os.ErrNotExist) {
			return nil, errPipe(path)
		}
		return nil, err
	}
	return f, nil
}
