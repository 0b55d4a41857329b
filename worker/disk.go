package worker

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The disk is measured so often that this takes at most a fiftieth of the time, but not more often
// than every 20 ms, because the peaks of a short stage are short. A walk through a large folder on
// a shared file system takes seconds, and burdens its server: there the pauses are minutes.
const (
	shortestPause = 20 * time.Millisecond
	pauseFactor   = 50
)

// pauseAfter returns the pause after a measurement that took so long.
func pauseAfter(took time.Duration) time.Duration { return max(pauseFactor*took, shortestPause) }

// diskWatch measures the disk that some folders use.
type diskWatch struct {
	dirs []string
	mu   sync.Mutex
	peak int64
	last atomic.Int64 // the last measurement
	end  chan struct{}
	done chan struct{}
}

// watchDisk begins to watch; stop must be called.
func watchDisk(dirs ...string) *diskWatch {
	w := &diskWatch{end: make(chan struct{}), done: make(chan struct{})}
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			w.dirs = append(w.dirs, abs)
		}
	}
	go func() {
		defer close(w.done)
		for {
			start := time.Now()
			w.Look()
			select {
			case <-time.After(pauseAfter(time.Since(start))):
			case <-w.end:
				return
			}
		}
	}()
	return w
}

// stop ends the watch and returns the largest measurement in bytes.
func (w *diskWatch) stop() int64 {
	close(w.end)
	<-w.done
	w.Look()
	return w.peak
}

// Look measures the disk's present use. A caller that removes much calls it first, because the time
// between writing and removing is short.
func (w *diskWatch) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := diskUse(w.dirs)
	w.peak = max(w.peak, now)
	w.last.Store(now)
}

// inode tells files apart.
type inode struct{ dev, ino uint64 }

// diskUse returns the disk that the files below some folders use, each file once: named ones, and
// nameless ones that this process has open.
func diskUse(dirs []string) (total int64) {
	seen := map[inode]bool{}
	add := func(path string) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || seen[inode{st.Dev, st.Ino}] {
			return // it is gone, or already counted
		}
		seen[inode{st.Dev, st.Ino}] = true
		total += st.Blocks * 512
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				add(path)
			}
			return nil
		})
	}
	open, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range open {
		path := filepath.Join("/proc/self/fd", fd.Name())
		target, err := os.Readlink(path)
		if err != nil || !strings.HasSuffix(target, " (deleted)") {
			continue
		}
		for _, dir := range dirs {
			if strings.HasPrefix(target, dir+string(filepath.Separator)) {
				add(path)
			}
		}
	}
	return total
}
