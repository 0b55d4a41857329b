package source

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"ndls/dataset/graph"
)

// open gives the source of a text.
func open(t testing.TB, text []byte, e *Encoding) *Source {
	t.Helper()
	name := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	files := &Files{}
	t.Cleanup(func() { _ = files.Close() })
	src, _, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	src.Encoding = e
	return src
}

// FuzzText reads any bytes: what comes out is UTF-8 without bytes of 0, has the bytes of the file but for ends of lines,
// and is the same in reads of any length.
func FuzzText(f *testing.F) {
	for _, s := range []string{"a\r\nb\rc\n", "é€😀", "\xc3", "a\xe9b", "a\x00b", "\xed\xa0\x80", "\r\r\n\r", "\xef\xbb\xbfa", "\xff\xfea\x00\r\x00\n\x00"} {
		f.Add([]byte(s), int64(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, off int64) {
		if len(data) == 0 {
			return // an empty file is refused before it is read
		}
		var texts [2][]byte
		var errs [2]error
		for i := range texts {
			text, err := open(t, data, nil).OpenText(context.Background(), 0)
			if err != nil {
				if !errors.Is(err, graph.ErrData) {
					t.Fatal(err)
				}
				return
			}
			var r io.Reader = text
			if i == 1 {
				r = iotest.OneByteReader(text)
			}
			texts[i], errs[i] = io.ReadAll(r)
			_ = text.Close()
		}
		// The first bytes of a character that is none may have been given before the rest of it.
		at := func(err error) string {
			_, where, _ := strings.Cut(fmt.Sprint(err), "t.csv line")
			return where
		}
		if at(errs[0]) != at(errs[1]) || !bytes.HasPrefix(texts[1], texts[0][:max(len(texts[0])-utf8.UTFMax, 0)]) || errs[0] == nil && !bytes.Equal(texts[0], texts[1]) {
			t.Fatalf("%q, %v; byte by byte %q, %v", texts[0], errs[0], texts[1], errs[1])
		}
		got := texts[0]
		sound := utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
		if sound != (errs[0] == nil) || sound && len(got) != len(data) {
			t.Fatalf("%q: %q, %v", data, got, errs[0])
		}
		if errs[0] == nil && (!utf8.Valid(got) || bytes.IndexByte(got, 0) >= 0) {
			t.Fatalf("%q is no text", got)
		}
		for i := range got {
			if errs[0] != nil && i >= len(got)-utf8.UTFMax {
				break
			}
			alone := data[i] == '\r' && (i+1 == len(data) || data[i+1] != '\n')
			if alone && got[i] != '\n' || !alone && got[i] != data[i] {
				t.Fatalf("byte %d of %q became %q", i, data, got[i])
			}
		}
		// From some byte on, what is read is the rest.
		if off > 0 && off < int64(len(data)) && sound {
			text, err := open(t, data, nil).OpenText(context.Background(), off)
			if err != nil {
				t.Fatal(err)
			}
			defer text.Close()
			if rest, err := io.ReadAll(text); err != nil || !bytes.Equal(rest, got[off:]) {
				t.Fatalf("from %d on %q, not %q, %v", off, rest, got[off:], err)
			}
		}
	})
}

// FuzzRecords compares records with those of encoding/csv, which reads RFC 4180, where that takes the text.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{"a,b\nc,d\n", "\"a\",\"b\"\"c\"\n", "\"a\nb\",c\r\n\r\nd,\"\"\n", "a,b,\n", "\"a\"x,b\n", "a\"b,c\n", "\"a", "\"a\r\nb\",\"c\n\n\"", ",\n", "\"\"\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// Blanks around quotes are no part of a field here, and CR ends a line.
		if len(data) == 0 || bytes.ContainsAny(data, " \t\v\f\u0085\u00a0") || bytes.Contains(bytes.ReplaceAll(data, []byte("\r\n"), nil), []byte("\r")) || bytes.HasPrefix(data, []byte(mark)) {
			return
		}
		l, err := OpenLines(context.Background(), open(t, data, nil))
		if err != nil {
			return
		}
		defer l.Close()
		r, other := &Records{Lines: l, Separator: ','}, csv.NewReader(bytes.NewReader(data))
		other.FieldsPerRecord = -1
		for {
			fields, err := r.Record()
			var got []string
			for _, field := range fields {
				got = append(got, string(field))
			}
			want, wantErr := other.Read()
			if err == io.EOF && wantErr == io.EOF || errors.Is(err, graph.ErrData) && !utf8.Valid(data) || errors.Is(err, graph.ErrData) && bytes.IndexByte(data, 0) >= 0 {
				return
			}
			if (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(got, want) {
				t.Fatalf("%q: %q, %v; encoding/csv has %q, %v", data, got, err, want, wantErr)
			}
			if err != nil {
				if !errors.Is(err, graph.ErrData) || !strings.Contains(err.Error(), "line ") {
					t.Fatal(err)
				}
				return
			}
			if line, _ := other.FieldPos(0); int64(line) != r.Line() {
				t.Fatalf("%q: line %d, not %d", data, r.Line(), line)
			}
		}
	})
}

// FuzzEncodings decodes any bytes: what comes out is UTF-8, or an error.
func FuzzEncodings(f *testing.F) {
	f.Add([]byte("a\xe9"), "latin-1")
	f.Add([]byte("\xff\xfea\x00"), "utf-16")
	f.Add([]byte("\x00\xd8\x00"), "utf-16le")
	f.Add([]byte("\x81\xff"), "gbk")
	f.Add([]byte("\x1b$B"), "iso-2022-jp")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if len(data) == 0 {
			return // an empty file is refused before it is read
		}
		e, err := EncodingOf(name)
		if err != nil {
			if !errors.Is(err, graph.ErrURI) {
				t.Fatal(err)
			}
			return
		}
		l, err := OpenLines(context.Background(), open(t, data, e))
		for err == nil {
			var line []byte
			if line, err = l.Next(); err == nil && !utf8.Valid(line) {
				t.Fatalf("%q in %s becomes %q", data, name, line)
			}
		}
		if err != io.EOF && !errors.Is(err, graph.ErrData) {
			t.Fatal(err)
		}
		if l != nil {
			_ = l.Close()
		}
	})
}
