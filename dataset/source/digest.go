package source

import (
	"encoding/hex"

	"github.com/zeebo/xxh3"
)

// Digest is a hash of 128 bits (XXH3) of the bytes of a file. Files with other bytes have another digest, unless somebody has made them
// so that they have the same.
type Digest struct{ sum xxh3.Hasher }

// Write takes the bytes that follow.
func (d *Digest) Write(p []byte) { _, _ = d.sum.Write(p) }

// Text returns the digest of all bytes: a prefix, then 32 digits as xxh128sum prints them.
func (d *Digest) Text() string {
	sum := d.sum.Sum128().Bytes()
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "xxh3-128:"
