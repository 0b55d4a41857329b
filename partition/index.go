package partition

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"ndls/internal/direct"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// sealIndex ends a file with its index.
func sealIndex(out io.Writer, index any) error {
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	text = binary.LittleEndian.AppendUint32(text, uint32(len(text)))
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text[:len(text)-4], seal.Castagnoli))
	_, err = out.Write(text)
	return err
}

// readIndex reads an index that [sealIndex] wrote.
func readIndex(r storage.Reader, name string, index any) error {
	const tail = 8
	var end bytes.Buffer
	read := func(from, to int64) error {
		end.Reset()
		part := direct.NewReader(r, max(from, 0), to)
		_, err := io.Copy(&end, part)
		return errors.Join(err, part.Close())
	}
	size := r.Size()
	if err := read(size-tail, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if end.Len() < tail {
		return seal.Corrupt(name, "it has no index")
	}
	length, sum := int64(binary.LittleEndian.Uint32(end.Bytes())), binary.LittleEndian.Uint32(end.Bytes()[4:])
	if length > size-tail {
		return seal.Corrupt(name, "its index has %d bytes, the file has %d", length, size)
	}
	if err := read(size-tail-length, size-tail); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if crc32.Checksum(end.Bytes(), seal.Castagnoli) != sum || json.Unmarshal(end.Bytes(), index) != nil {
		return seal.Corrupt(name, "its index is damaged")
	}
	return nil
}
