package shards

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"ndls/internal/storage"
)

// Our Parquet and Arrow files carry a seal between their data and their footer,
// where every reader of those formats skips it:
//
//	marks   16 bytes each: end int64, rows uint32, CRC-32C uint32
//	count   uint32, number of marks
//	sum     uint32, CRC-32C of the marks, the count and everything after the seal
//	magic   8 bytes
//
// Mark i vouches for the bytes from the end of mark i-1, or the start of the
// file, to its own. Nothing is decoded before its sum is checked: the decoders
// panic or allocate without bound on damaged input.
const (
	sealMagic   = "ndlsseal"
	sealTrailer = int64(4 + 4 + len(sealMagic))
	markSize    = int64(16)
)

const (
	parquetMagic = "PAR1"
	arrowMagic   = "ARROW1"
)

// mark vouches for one stretch of a file: a row group or a record batch.
type mark struct {
	end  int64
	rows uint32
	sum  uint32
}

// footerLength finds how many bytes at the end of a file are its footer.
func footerLength(tail []byte, magic string) (int64, bool) {
	if len(tail) < 4+len(magic) || string(tail[len(tail)-len(magic):]) != magic {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(tail[len(tail)-len(magic)-4:])
	return int64(n) + 4 + int64(len(magic)), true
}

// sealer passes a file on to w while it takes the sums of its stretches. Once
// it holds, it keeps the rest, which ends in the footer, until finish.
// It is an io.WriteSeeker only so far that it tells its position.
type sealer struct {
	w       io.Writer
	pos     int64
	sum     uint32
	marks   []mark
	holding bool
	held    bytes.Buffer
	// err is the first error of w: the libraries above turn it into a panic or
	// another error.
	err error
}

func (s *sealer) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.holding {
		return s.held.Write(p)
	}
	n, err := s.w.Write(p)
	s.pos += int64(n)
	s.sum = crc32.Update(s.sum, castagnoli, p[:n])
	s.err = err
	return n, err
}

// Seek implements io.Seeker for the one question "where am I".
func (s *sealer) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fmt.Errorf("shards: seek in a file being written")
	}
	return s.pos + int64(s.held.Len()), nil
}

// mark ends a stretch that holds rows.
func (s *sealer) mark(rows int) {
	s.marks = append(s.marks, mark{end: s.pos, rows: uint32(rows), sum: s.sum})
	s.sum = 0
}

// finish writes what was held back: the data before the footer, then filler,
// the seal and the footer.
func (s *sealer) finish(magic string, filler []byte) error {
	s.holding = false
	held := s.held.Bytes()
	n, ok := footerLength(held, magic)
	if s.err != nil || !ok || n > int64(len(held)) {
		return fmt.Errorf("shards: writing footer: %w", s.err)
	}
	footer := held[int64(len(held))-n:]
	if _, err := s.Write(held[:int64(len(held))-n]); err != nil {
		return err
	}
	if _, err := s.Write(filler); err != nil {
		return err
	}
	s.mark(0) // whatever lies between the last stretch and the seal
	seal := make([]byte, 0, int64(len(s.marks))*markSize+sealTrailer)
	for _, m := range s.marks {
		seal = binary.LittleEndian.AppendUint64(seal, uint64(m.end))
		seal = binary.LittleEndian.AppendUint32(seal, m.rows)
		seal = binary.LittleEndian.AppendUint32(seal, m.sum)
	}
	seal = binary.LittleEndian.AppendUint32(seal, uint32(len(s.marks)))
	sum := crc32.Update(crc32.Checksum(seal, castagnoli), castagnoli, footer)
	seal = binary.LittleEndian.AppendUint32(seal, sum)
	seal = append(seal, sealMagic...)
	if _, err := s.Write(seal); err != nil {
		return err
	}
	_, err := s.Write(footer)
	return err
}

// readMarks checks footer and seal of a file and returns its marks, the last of
// which ends where the seal begins.
func readMarks(r storage.Reader, name, magic string) ([]mark, error) {
	tail := make([]byte, min(r.Size(), 64))
	if err := readFull(r, name, tail, r.Size()-int64(len(tail))); err != nil {
		return nil, err
	}
	footer, ok := footerLength(tail, magic)
	end := r.Size() - footer // of the seal
	if !ok || end < int64(len(magic)) {
		return nil, corrupt(name, "it is cut off, or not a %s file", magic)
	}
	if end < sealTrailer {
		return nil, refuse(name, "it has no seal, so this program did not write it")
	}
	trailer := make([]byte, sealTrailer)
	if err := readFull(r, name, trailer, end-sealTrailer); err != nil {
		return nil, err
	}
	if string(trailer[8:]) != sealMagic {
		return nil, refuse(name, "it has no seal, so this program did not write it")
	}
	count := int64(binary.LittleEndian.Uint32(trailer))
	start := end - sealTrailer - count*markSize
	if count < 1 || start < 0 {
		return nil, corrupt(name, "its seal is damaged")
	}
	rest := make([]byte, r.Size()-start)
	if err := readFull(r, name, rest, start); err != nil {
		return nil, err
	}
	sealed := rest[:count*markSize+4]
	sum := crc32.Update(crc32.Checksum(sealed, castagnoli), castagnoli, rest[end-start:])
	if sum != binary.LittleEndian.Uint32(trailer[4:]) {
		return nil, corrupt(name, "its footer is damaged")
	}
	return parseMarks(name, sealed, count, start)
}

func parseMarks(name string, b []byte, count, start int64) ([]mark, error) {
	marks := make([]mark, count)
	var last int64
	for i := range marks {
		m := b[int64(i)*markSize:]
		marks[i] = mark{
			end:  int64(binary.LittleEndian.Uint64(m)),
			rows: binary.LittleEndian.Uint32(m[8:]),
			sum:  binary.LittleEndian.Uint32(m[12:]),
		}
		if marks[i].end < last || marks[i].end > start {
			return nil, corrupt(name, "mark %d of its seal is out of place", i+1)
		}
		last = marks[i].end
	}
	if last != start {
		return nil, corrupt(name, "it is %d bytes longer or shorter than its seal says", start-last)
	}
	return marks, nil
}

// readFull fills p from offset off, which must be inside the file.
func readFull(r storage.Reader, name string, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		return corrupt(name, "it ends at byte %d, %d more were expected", off+int64(n), len(p)-n)
	}
	return fmt.Errorf("shards: read %s: %w", name, err)
}

// refuse is an ErrCorrupt for a file that another program put in the place of
// ours.
func refuse(name, reason string) error {
	return fmt.Errorf("shards: %s: %s: %w: take it out of the run directory and import it as a dataset (ndls partition --dataset)",
		name, reason, ErrCorrupt)
}

// corrupt is an ErrCorrupt that names the file, what is wrong and the way out.
func corrupt(name, format string, args ...any) error {
	return fmt.Errorf("shards: %s: %s: %w: it changed since it was written; run the stage that wrote it again in a new run directory",
		name, fmt.Sprintf(format, args...), ErrCorrupt)
}
