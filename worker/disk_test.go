package worker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ndls/internal/direct"
)

// TestDiskUse counts files by what they take, nameless ones included, and each
// once where one folder lies in the other.
func TestDiskUse(t *testing.T) {
	run := t.TempDir()
	inner := filepath.Join(run, "scratch")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	dirs := []string{run, inner}
	w := watchDisk(dirs...)
	if err := os.WriteFile(filepath.Join(inner, "named"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := direct.NewScratch(inner)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteAt(direct.AlignedBytes(2<<20), 0); err != nil {
		t.Fatal(err)
	}
	if got := diskUse(dirs); got < 3<<20 || got > 3<<20+1<<17 {
		t.Errorf("%d bytes of 3 MiB", got)
	}
	if got := diskUse([]string{t.TempDir()}); got != 0 {
		t.Errorf("%d bytes in an empty folder", got)
	}
	if got := w.stop(); got < 3<<20 {
		t.Errorf("the peak is %d", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := diskUse(dirs); got < 1<<20 || got > 1<<20+1<<17 {
		t.Errorf("%d bytes of 1 MiB after close", got)
	}
}

// TestLooksAreRareWhereTheyAreSlow: looking takes at most a fiftieth of the time.
func TestLooksAreRareWhereTheyAreSlow(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 20 * time.Millisecond, time.Millisecond: 50 * time.Millisecond, 20 * time.Millisecond: time.Second, 4 * time.Second: 200 * time.Second,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after a look of %v a pause of %v, want %v", took, got, want)
		}
	}
}
