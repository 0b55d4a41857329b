package direct

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// randomFile writes so many random bytes.
func randomFile(t *testing.T, size int) (*File, []byte) {
	t.Helper()
	content := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(content)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, content
}

func TestQueueReadsWhatReadAtReads(t *testing.T) {
	f, content := randomFile(t, 300*Align+123)
	for _, c := range []struct {
		name string
		r    io.ReaderAt
	}{{"file", f}, {"other reader", bytes.NewReader(content)}} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			q := NewQueue()
			defer q.Close()
			type request struct {
				p   []byte
				off int64
			}
			var under [QueueDepth]*request
			for range 2000 {
				slot := rng.IntN(QueueDepth)
				if r := under[slot]; r != nil {
					want := make([]byte, len(r.p))
					wantN, wantErr := bytes.NewReader(content).ReadAt(want, r.off)
					n, err := q.Wait(slot)
					if n != wantN || !errors.Is(err, wantErr) || !bytes.Equal(r.p[:n], want[:n]) {
						t.Fatalf("%d bytes at %d: %d bytes, %v; want %d, %v", len(r.p), r.off, n, err, wantN, wantErr)
					}
					under[slot] = nil
					continue
				}
				// Most are for the kernel; some are not aligned, or go past the end.
				r := &request{AlignedBytes((1 + rng.IntN(20)) * Align), int64(rng.IntN(310)) * Align}
				if rng.IntN(10) == 0 {
					r.p, r.off = r.p[1:], r.off+int64(rng.IntN(100))
				}
				under[slot] = r
				q.Start(slot, c.r, r.p, r.off)
			}
		})
	}
}

func TestQueuesOfManyThreads(t *testing.T) {
	f, content := randomFile(t, 64*Align)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				q := NewQueue()
				p := AlignedBytes(8 * Align)
				q.Start(3, f, p, int64(i)*8*Align)
				if n, err := q.Wait(3); n != len(p) || err != nil || !bytes.Equal(p, content[i*8*Align:][:len(p)]) {
					t.Errorf("thread %d: %d bytes, %v", i, n, err)
				}
				q.Start(0, f, p, 0) // under way at the end
				q.Close()
			}
		})
	}
	wg.Wait()
}

// failing has no bytes.
type failing struct{ error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.error }

func TestQueueHandsErrorsOn(t *testing.T) {
	q := NewQueue()
	defer q.Close()
	f, _ := randomFile(t, Align)
	_ = f.Close()
	p := AlignedBytes(Align)
	broken := errors.New("broken")
	q.Start(0, failing{broken}, p, 0)
	q.Start(1, f, p, 0)
	if _, err := q.Wait(0); !errors.Is(err, broken) {
		t.Errorf("the reader's error: %v", err)
	}
	if _, err := q.Wait(1); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed file: %v", err)
	}
}

// TestQueueOutlivesItsContext takes the kernel's context from a queue with a read under
// way: the read gives the right bytes, and no later queue gets the broken context.
func TestQueueOutlivesItsContext(t *testing.T) {
	f, content := randomFile(t, 64*Align)
	queues.Lock()
	queues.free = nil
	queues.Unlock()
	q := NewQueue()
	if q.kernel == 0 {
		t.Skip("the kernel gives no context")
	}
	p, other := AlignedBytes(8*Align), AlignedBytes(8*Align)
	q.Start(0, f, p, 0)
	q.Start(1, f, other, 8*Align)
	if _, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, q.kernel, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	for slot, want := range [][]byte{content[:len(p)], content[len(p):][:len(other)]} {
		got := q.slots[slot].p
		clear(got)
		if n, err := q.Wait(slot); n != len(want) || err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d: %d bytes, %v", slot, n, err)
		}
	}
	q.Close()
	again := NewQueue()
	defer again.Close()
	if again == q {
		t.Error("the next queue has the context that is gone")
	}
}
