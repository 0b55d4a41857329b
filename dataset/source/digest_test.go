package source

import "testing"

// TestDigest has the digests of the published test of XXH3, whatever the portions.
func TestDigest(t *testing.T) {
	var empty, parts, whole Digest
	if got := empty.Text(); got != "xxh3-128:99aa06d3014798d86001c324468d497f" {
		t.Errorf("no bytes: %s", got)
	}
	text := make([]byte, 5000)
	for i := range text {
		text[i] = byte(i)
	}
	whole.Write(text)
	for i := range text {
		parts.Write(text[i : i+1])
	}
	if parts.Text() != whole.Text() || whole.Text() == empty.Text() {
		t.Errorf("one byte at a time: %s, all at once: %s", parts.Text(), whole.Text())
	}
}
