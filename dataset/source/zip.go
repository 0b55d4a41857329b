package source

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"ndls/dataset/graph"
)

const (
	// maxDirectory bounds the directory of a zip archive in bytes, and maxMembers its entries: each takes some 300
	// bytes of memory.
	maxDirectory = 8 << 20
	maxMembers   = 1 << 16
	// maxEnd is the largest distance of a directory's end from the end of the file: a comment may
	// follow.
	maxEnd = 22 + 1<<16 - 1
)

// ZipMembers lists the files of an archive.
func ZipMembers(f File, name string) ([]*zip.File, error) {
	if err := notEmpty(f, name); err != nil {
		return nil, err
	}
	directory := &zipDirectory{f: f}
	err := checkZipEnd(f)
	var z *zip.Reader
	if err == nil {
		z, err = zip.NewReader(directory, f.Size())
	}
	switch {
	case errors.Is(err, errZipLarge):
		return nil, graph.BadData(name, "is a zip archive of more than %d files, or of %d MiB of names: pack fewer files together", maxMembers, maxDirectory>>20)
	case err != nil:
		if err := refuseHead(f, name); err != nil {
			return nil, err
		}
		return nil, graph.Damaged(name, fmt.Errorf("%w: it is damaged or no zip archive, fetch it again", err))
	}
	directory.listed = true
	var members []*zip.File
	for _, m := range z.File {
		if !strings.HasSuffix(m.Name, "/") {
			members = append(members, m)
		}
	}
	return members, nil
}

var errZipLarge = errors.New("the directory of the zip archive is too large")

// zipDirectory is a file of whose bytes a bounded number is read until its directory is listed.
type zipDirectory struct {
	f      File
	read   int64
	listed bool
}

func (d *zipDirectory) ReadAt(p []byte, off int64) (int, error) {
	if !d.listed {
		if d.read > maxDirectory+2*maxEnd {
			return 0, errZipLarge
		}
		d.read += int64(len(p))
	}
	return d.f.ReadAt(p, off)
}

// checkZipEnd refuses an archive that claims more entries than are read: memory is taken for them before they are
// looked at.
func checkZipEnd(f File) error {
	tail := make([]byte, min(f.Size(), maxEnd+20)) // the locator of ZIP64 comes before the end
	if _, err := f.ReadAt(tail, f.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return err
	}
	end := strings.LastIndex(string(tail), "PK\x05\x06")
	if end < 0 || end+22 > len(tail) {
		return nil // the library says what is wrong
	}
	if binary.LittleEndian.Uint16(tail[end+10:]) != 0xffff || end < 20 || string(tail[end-20:end-16]) != "PK\x06\x07" {
		return nil
	}
	record := make([]byte, 56)
	at := int64(binary.LittleEndian.Uint64(tail[end-20+8:]))
	if at < 0 || at > f.Size()-int64(len(record)) {
		return nil
	}
	if _, err := f.ReadAt(record, at); err != nil && err != io.EOF {
		return err
	}
	if binary.LittleEndian.Uint64(record[32:]) > maxMembers {
		return errZipLarge
	}
	return nil
}
