package seal

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
//	marks   16 bytes each: end int64, Rows uint32, CRC-32C uint32
//	count   uint32, number of marks
//	sum     uint32, CRC-32C of the marks, the count and everything after the seal
//	magic   8 bytes
//
// Mark i vouches for the bytes from the end of mark i-1, or the start of the
// file, to its own. Nothing is decoded before its sum is checked: the decoders
// panic or allocate without bound on damaged input.
const (
	sealMagic = "ndlsseal"
	// TrailerBytes is the length of a seal without its marks, MarkBytes that of a mark.
	TrailerBytes = int64(4 + 4 + len(sealMagic))
	MarkBytes    = int64(16)
)

// The magic strings at the end of the formats that carry a seal.
const (
	Parquet = "PAR1"
	Arrow   = "ARROW1"
)

// Castagnoli is the polynomial of every CRC-32 in our files.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark vouches for one stretch of a file: a row group or a record batch.
type Mark struct {
	End  int64
	Rows uint32
	Sum  uint32
}

// FooterLength finds how many bytes at the end of a file are its footer.
func FooterLength(tail []byte, magic string) (int64, bool) {
	if len(tail) < 4+len(magic) || string(tail[len(tail)-len(magic):]) != magic {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(tail[len(tail)-len(magic)-4:])
	return int64(n) + 4 + int64(len(magic)), true
}

// Writer passes a file on to w while it takes the sums of its stretches. Once
// it holds, it keeps the rest, which ends in the footer, until finish.
// It is an io.WriteSeeker only so far that it tells its position.
type Writer struct {
	w       io.Writer
	pos     int64
	sum     uint32
	marks   []Mark
	holding bool
	held    bytes.Buffer
	err     error
}

// NewWriter returns a Writer that passes a file on to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Pos is the number of bytes that were passed on.
func (s *Writer) Pos() int64 { return s.pos }

// Err is the first error of the writer below. Libraries above turn it into a panic
// or another error.
func (s *Writer) Err() error { return s.err }

// Hold makes the Writer keep what comes until Finish.
func (s *Writer) Hold() { s.holding = true }

// Holding reports whether Hold was called.
func (s *Writer) Holding() bool { return s.holding }

// Held returns what came since Hold. The caller may change it.
func (s *Writer) Held() []byte { return s.held.Bytes() }

func (s *Writer) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.holding {
		return s.held.Write(p)
	}
	n, err := s.w.Write(p)
	s.pos += int64(n)
	s.sum = crc32.Update(s.sum, Castagnoli, p[:n])
	s.err = err
	return n, err
}

// Seek implements io.Seeker for the one question "where am I".
func (s *Writer) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fmt.Errorf("seal: seek in a file being written")
	}
	return s.pos + int64(s.held.Len()), nil
}

// Mark ends a stretch that holds rows.
func (s *Writer) Mark(rows int) {
	s.marks = append(s.marks, Mark{End: s.pos, Rows: uint32(rows), Sum: s.sum})
	s.sum = 0
}

// Finish writes what was held back: the data before the footer, then filler,
// the seal and the footer.
func (s *Writer) Finish(magic string, filler []byte) error {
	s.holding = false
	held := s.held.Bytes()
	n, ok := FooterLength(held, magic)
	if s.err != nil || !ok || n > int64(len(held)) {
		return fmt.Errorf("writing footer: %w", s.err)
	}
	footer := held[int64(len(held))-n:]
	if _, err := s.Write(held[:int64(len(held))-n]); err != nil {
		return err
	}
	if _, err := s.Write(filler); err != nil {
		return err
	}
	s.Mark(0) // whatever lies between the last stretch and the seal
	seal := make([]byte, 0, int64(len(s.marks))*MarkBytes+TrailerBytes)
	for _, m := range s.marks {
		seal = binary.LittleEndian.AppendUint64(seal, uint64(m.End))
		seal = binary.LittleEndian.AppendUint32(seal, m.Rows)
		seal = binary.LittleEndian.AppendUint32(seal, m.Sum)
	}
	seal = binary.LittleEndian.AppendUint32(seal, uint32(len(s.marks)))
	sum := crc32.Update(crc32.Checksum(seal, Castagnoli), Castagnoli, footer)
	seal = binary.LittleEndian.AppendUint32(seal, sum)
	seal = append(seal, sealMagic...)
	if _, err := s.Write(seal); err != nil {
		return err
	}
	_, err := s.Write(footer)
	return err
}

// ReadMarks checks footer and seal of a file and returns its marks, the last of
// which ends where the seal begins.
func ReadMarks(r storage.Reader, name, magic string) ([]Mark, error) {
	tail := make([]byte, min(r.Size(), 64))
	if err := ReadFull(r, name, tail, r.Size()-int64(len(tail))); err != nil {
		return nil, err
	}
	footer, ok := FooterLength(tail, magic)
	end := r.Size() - footer // of the seal
	if !ok || end < int64(len(magic)) {
		return nil, Corrupt(name, "it is cut off, or not a %s file", magic)
	}
	if end < TrailerBytes {
		return nil, Refuse(name, "it has no seal, so this program did not write it")
	}
	trailer := make([]byte, TrailerBytes)
	if err := ReadFull(r, name, trailer, end-TrailerBytes); err != nil {
		return nil, err
	}
	if string(trailer[8:]) != sealMagic {
		return nil, Refuse(name, "it has no seal, so this program did not write it")
	}
	count := int64(binary.LittleEndian.Uint32(trailer))
	start := end - TrailerBytes - count*MarkBytes
	if count < 1 || start < 0 {
		return nil, Corrupt(name, "its seal is damaged")
	}
	rest := make([]byte, r.Size()-start)
	if err := ReadFull(r, name, rest, start); err != nil {
		return nil, err
	}
	sealed := rest[:count*MarkBytes+4]
	sum := crc32.Update(crc32.Checksum(sealed, Castagnoli), Castagnoli, rest[end-start:])
	if sum != binary.LittleEndian.Uint32(trailer[4:]) {
		return nil, Corrupt(name, "its footer is damaged")
	}
	return parseMarks(name, sealed, count, start)
}

func parseMarks(name string, b []byte, count, start int64) ([]Mark, error) {
	marks := make([]Mark, count)
	var last int64
	for i := range marks {
		m := b[int64(i)*MarkBytes:]
		marks[i] = Mark{
			End:  int64(binary.LittleEndian.Uint64(m)),
			Rows: binary.LittleEndian.Uint32(m[8:]),
			Sum:  binary.LittleEndian.Uint32(m[12:]),
		}
		if marks[i].End < last || marks[i].End > start {
			return nil, Corrupt(name, "mark %d of its seal is out of place", i+1)
		}
		last = marks[i].End
	}
	if last != start {
		return nil, Corrupt(name, "it is %d bytes longer or shorter than its seal says", start-last)
	}
	return marks, nil
}

// ReadFull fills p from offset off, which must be inside the file.
func ReadFull(r storage.Reader, name string, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		return Corrupt(name, "it ends at byte %d, %d more were expected", off+int64(n), len(p)-n)
	}
	return fmt.Errorf("read %s: %w", name, err)
}
