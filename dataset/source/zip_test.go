package source

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// bytesFile is a file in memory.
type bytesFile struct{ *bytes.Reader }

func (bytesFile) Close() error { return nil }
func (bytesFile) Name() string { return "a.zip" }

func archive(t *testing.T, members int, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range members {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: name + strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// claiming is an archive of three members with a ZIP64 end that claims so many entries, behind so many bytes.
func claiming(t *testing.T, before int, entries uint64) []byte {
	t.Helper()
	b := archive(t, 3, "m")
	end := b[len(b)-22:]
	b = b[:len(b)-22]
	at := uint64(before + len(b))
	record := make([]byte, 56)
	copy(record, "PK\x06\x06")
	binary.LittleEndian.PutUint64(record[4:], 44)
	binary.LittleEndian.PutUint64(record[24:], entries)
	binary.LittleEndian.PutUint64(record[32:], entries)
	binary.LittleEndian.PutUint64(record[40:], uint64(binary.LittleEndian.Uint32(end[12:])))
	binary.LittleEndian.PutUint64(record[48:], uint64(binary.LittleEndian.Uint32(end[16:]))+uint64(before))
	locator := make([]byte, 20)
	copy(locator, "PK\x06\x07")
	binary.LittleEndian.PutUint64(locator[8:], at)
	locator[16] = 1
	last := make([]byte, 22)
	copy(last, "PK\x05\x06")
	for i := 8; i < 20; i++ {
		last[i] = 0xff
	}
	return bytes.Join([][]byte{make([]byte, before), b, record, locator, last}, nil)
}

// TestZipDirectories: what an archive claims of its directory takes no memory before it was looked at, and a directory that is
// too large is refused.
func TestZipDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		data    []byte
		members int // -1 if it is refused
		want    string
	}{
		"usual":        {archive(t, 100, "m"), 100, ""},
		"many members": {archive(t, 120_000, strings.Repeat("m", 60)), -1, "pack fewer files together"},
		"long names":   {archive(t, 300, strings.Repeat("m", 50_000)), -1, "pack fewer files together"},
		"ZIP64":        {claiming(t, 0, 3), 3, ""},
		"claims":       {claiming(t, 64<<20, 2<<20), -1, "pack fewer files together"},
		"no end":       {[]byte("PK\x05\x06"), -1, "damaged"},
		"nothing":      {nil, -1, "is empty (0 bytes)"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		members, err := ZipMembers(bytesFile{bytes.NewReader(c.data)}, "a.zip")
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
			t.Errorf("%s: %d MiB were allocated", name, n>>20)
		}
		if c.members < 0 && (err == nil || !strings.Contains(err.Error(), c.want)) || c.members >= 0 && (err != nil || len(members) != c.members) {
			t.Errorf("%s: %d members, %v", name, len(members), err)
		}
	}
}
