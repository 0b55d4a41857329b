// Package sealtest changes sealed files for tests.
package sealtest

import (
	"encoding/binary"
	"hash/crc32"

	"ndls/internal/seal"
)

// Reseal makes the seal right again of a file whose footer was changed, which must have
// kept its length. It panics where data has no footer of that kind.
func Reseal(data []byte, magic string) {
	n, ok := seal.FooterLength(data, magic)
	if !ok {
		panic("the data has no footer " + magic)
	}
	end := int64(len(data)) - n
	trailer := data[end-seal.TrailerBytes:]
	count := int64(binary.LittleEndian.Uint32(trailer))
	sealed := data[end-seal.TrailerBytes-count*seal.MarkBytes : end-seal.TrailerBytes+4]
	sum := crc32.Update(crc32.Checksum(sealed, seal.Castagnoli), seal.Castagnoli, data[end:])
	binary.LittleEndian.PutUint32(trailer[4:], sum)
}
