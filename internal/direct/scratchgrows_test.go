package direct

import (
	"sync"
	"testing"
)

// TestScratchGrowsMeanwhile reads where nothing was written, while other threads write behind
// it, which makes the file longer: such a read gives zeros.
func TestScratchGrowsMeanwhile(t *testing.T) {
	for range 50 {
		s, err := NewScratch(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var threads sync.WaitGroup
		for i := range int64(32) {
			threads.Go(func() {
				p := AlignedBytes(Align)
				if err := s.ReadAt(p, i*Align); err != nil {
					t.Error(err)
				}
				if err := s.WriteAt(p, i*Align); err != nil {
					t.Error(err)
				}
			})
		}
		threads.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
