package train

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestThreadPool has thread pools take many sections, some so long after the one before that helpers sleep.
func TestThreadPool(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, threads := range []int{1, 2, 5, 16} {
		c := newThreadPool(pool(threads))
		calls := make([]int, threads)
		numbers := make([]atomic.Int32, 100)
		const sections = 300
		for section := range sections {
			if section%50 == 49 {
				time.Sleep(2 * patience) // before the caller begins
			}
			c.each(func(thread int) {
				if section%50 == 24 && thread == threads-1 {
					time.Sleep(2 * patience) // the caller waits
				}
				calls[thread]++
			})
			c.share(len(numbers), func(i int) { numbers[i].Add(1) })
		}
		for thread, n := range calls {
			if n != sections {
				t.Errorf("thread %d of %d had %d of %d sections", thread, threads, n, sections)
			}
		}
		for i := range numbers {
			if n := numbers[i].Load(); n != sections {
				t.Errorf("%d threads took number %d %d times", threads, i, n)
			}
		}
		c.free()
	}
	(*threadPool)(nil).free()
	newThreadPool(3).free() // it took no section
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left of thread pools that are free", runtime.NumGoroutine()-before)
}

// BenchmarkSection measures a section without its work: all threads of the machine begin it, and
// end it.
func BenchmarkSection(b *testing.B) {
	c := newThreadPool(pool(runtime.NumCPU()))
	defer c.free()
	for b.Loop() {
		c.each(func(int) {})
	}
}
