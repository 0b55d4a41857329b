// Package share divides a task into parts that several threads take, or several machines ([Part]).
package share

import (
	"sync"
	"sync/atomic"
)

// Each calls do for parts 0, 1, …, n-1, each once, on so many threads, of which the caller's
// is one. A thread that is done with a part takes the next one. After an error no thread
// takes another part. Each returns when all threads are done, with the error of the first
// part that failed.
func Each(threads, n int, do func(part int) error) error {
	threads = max(min(threads, n), 1)
	var (
		next   atomic.Int64
		failed atomic.Bool
		mu     sync.Mutex
		first  = n // the part of err
		err    error
	)
	work := func() {
		for !failed.Load() {
			part := int(next.Add(1)) - 1
			if part >= n {
				return
			}
			if e := do(part); e != nil {
				failed.Store(true)
				mu.Lock()
				if part < first {
					first, err = part, e
				}
				mu.Unlock()
			}
		}
	}
	var others sync.WaitGroup
	for range threads - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return err
}

// Ranges cuts [0, n) into ranges of so many numbers, the last perhaps shorter, and calls do
// for each of them as [Each] does.
func Ranges(threads, n, size int, do func(lo, hi int) error) error {
	return Each(threads, (n+size-1)/size, func(part int) error {
		return do(part*size, min((part+1)*size, n))
	})
}
