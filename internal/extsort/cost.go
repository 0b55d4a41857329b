package extsort

import "ndls/internal/direct"

const (
	// minRunBuffer and maxRunBuffer bound how many bytes are read of a run at a time.
	minRunBuffer = 64 << 10
	maxRunBuffer = 4 << 20
)

// buffers is how many arrays a Sorter works with: on one thread keys are not
// added while others are sorted.
func (o Options) buffers() int64 { return int64(min(max(o.Threads, 1), 2)) + 1 }

// bufferKeys is the length of each array, with so many bytes free.
func (o Options) bufferKeys(free int64) int64 {
	free -= min(free/4, o.Leave)
	size := free / o.buffers() &^ (direct.Align - 1) / 8
	if o.Want > 0 {
		size = min(size, o.Want)
	}
	return max(size, minSortKeys)
}

// Bytes is the memory to sort so many keys without a file; of no keys, the least
// with which keys can be sorted at all.
func (o Options) Bytes(keys int64) int64 { return o.buffers() * 8 * max(keys, minSortKeys) }

// Spills says whether so many keys are written to files, with so many bytes free.
func (o Options) Spills(keys, free int64) bool { return keys > o.bufferKeys(free) }

// Touched is how much memory is used to sort so many keys with so many bytes free:
// buffers are only filled as far as there are keys.
func (o Options) Touched(keys, free int64) int64 {
	buffer := o.bufferKeys(free)
	if keys <= buffer {
		return 8 * 2 * keys
	}
	third := (o.buffers() - 2) * min(buffer, keys-buffer)
	return 8 * (2*buffer + third)
}

// runBuffer is the bytes for reading each of so many runs.
func runBuffer(free int64, runs int) int64 {
	return min(max(free/int64(runs), minRunBuffer), maxRunBuffer) &^ (2*8*blockKeys - 1)
}

// IndexBytes is the memory for the marks of run files with so many keys.
func IndexBytes(keys int64) int64 { return keys / blockKeys * markBytes }

// mergeBlock is how many bytes of a run file a section may have more than its keys.
const mergeBlock = 8 * blockKeys

// MergeBytes is how much memory is used to merge the sections of so many run files,
// with so many bytes free and keys in each section, and the least that is enough.
func MergeBytes(free int64, runs int, keys int64) (used, least int64) {
	return int64(runs) * min(runBuffer(free, runs), 8*keys+mergeBlock), int64(runs) * minRunBuffer
}
