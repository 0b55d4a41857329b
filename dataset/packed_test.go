package dataset

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// The lines "0 1", "1 2" and "7 1", packed by Python 3.11: bz2.compress and
// lzma.compress(preset=6) of the first line, then of the rest, and lzma.compress(preset=9)
// of all.
const (
	bzip2Lines = "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xd3\x72\x63\x09\x00\x00\x01\x58\x00\x00\x10\x40\x00\x60\x00\x20\x00\x21\x9a\x68\x33\x4d\x17\x3c\x5d\xc9\x14\xe1\x42\x43\x4d\xc9\x8c\x24\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x3b\x7d\xb1\x4d\x00\x00\x02\xd8\x00\x00\x10\x40\x00\x30\x80\x20\x00\x21\x83\x41\x9a\x0b\x8a\x12\x71\x77\x24\x53\x85\x09\x03\xb7\xdb\x14\xd0"
	xz6Lines   = "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x03\x30\x20\x31\x0a\x00\x17\x52\xdf\xcc\x10\xe7\x33\x2f\x00\x01\x1c\x04\x6f\x2c\x9c\xc1\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x07\x31\x20\x32\x0a\x37\x20\x31\x0a\x00\x72\x60\xae\x7e\xdc\xd9\xc5\xfd\x00\x01\x20\x08\xbb\x19\xd9\xbb\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a"
	xz9Lines   = "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x1c\x00\x00\x00\x10\xcf\x58\xcc\x01\x00\x0b\x30\x20\x31\x0a\x31\x20\x32\x0a\x37\x20\x31\x0a\x00\x19\x27\x3e\x01\xf4\x94\x0d\x9a\x00\x01\x24\x0c\xa6\x18\xd8\xd8\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a"
)

func lz4ed(data string) []byte {
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	_, _ = w.Write([]byte(data))
	_ = w.Close()
	return b.Bytes()
}

func xzed(data string) []byte {
	var b bytes.Buffer
	w, _ := xz.WriterConfig{DictCap: 1 << 20}.NewWriter(&b)
	_, _ = w.Write([]byte(data))
	_ = w.Close()
	return b.Bytes()
}

// TestPacked reads packed files, and packed files with any byte changed or cut off.
func TestPacked(t *testing.T) {
	want := []Edge{{U: 0, V: 1}, {U: 1, V: 2}, {U: 7, V: 1}}
	const lines = "0 1\n1 2\n7 1\n"
	for name, data := range map[string][]byte{
		"e.txt.gz": gzipped(lines), "e.txt.zst": zstded(lines), "e.txt.bz2": []byte(bzip2Lines), "e.txt.xz": []byte(xz6Lines),
		"e.csv.xz": xzed(lines), "e.txt.lz4": lz4ed(lines), "e.lz4": append(lz4ed(lines[:4]), lz4ed(lines[4:])...),
	} {
		dir := writeFiles(t, map[string][]byte{name: data})
		if got, err := readEdges(open(t, "edges:"+dir+"/"+name, Options{}), 2); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for i := range data {
			flipped := bytes.Clone(data)
			flipped[i] ^= 0x55
			for _, broken := range [][]byte{flipped, data[:i]} {
				dir := writeFiles(t, map[string][]byte{name: broken})
				err := readAll(t, "edges:"+dir+"/"+name)
				if one := name == "e.csv.xz" || name == "e.txt.lz4" || name == "e.txt.gz"; err == nil && one && i > 0 && len(broken) < len(data) {
					t.Errorf("%s is read without its last %d bytes", name, len(data)-i)
				}
				if err != nil && (!errors.Is(err, ErrData) || !strings.Contains(err.Error(), name)) {
					t.Errorf("%s, byte %d: %v", name, i, err)
				}
			}
		}
	}
}

func TestPackedRefused(t *testing.T) {
	for name, c := range map[string]struct {
		data, want string
	}{
		"a.txt.xz": {xz9Lines, "dictionary of 64 MiB, at most 8 MiB are used: unpack it (xz -d)"},
		"b.txt.xz": {"0 1\n1 2\n", "is not xz data: rename it without .xz"}, "b.txt.bz2": {"0 1\n1 2\n", "is not bzip2 data"}, "b.txt.lz4": {"0 1\n1 2\n", "is not an lz4 frame"},
		"c.txt.xz": {xz6Lines[:40], "ends too early"},
	} {
		dir := writeFiles(t, map[string][]byte{name: []byte(c.data)})
		if err := readAll(t, "edges:"+dir+"/"+name); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
