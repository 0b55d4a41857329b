package worker

import (
	"context"
	"io"
	"time"

	"ndls/group/remote"
	"ndls/internal/control/address"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/machine"
)

const (
	// ratedRows is the size in bytes of the rows with which the edge rate is measured.
	ratedRows = 32 << 20
	// ratedFor bounds the measurement of the network.
	ratedFor = 80 * time.Millisecond
	// ratedAsks is the number of small requests, of which the fastest counts.
	ratedAsks = 5
	// ratedBytes is the number of bytes read from the store.
	ratedBytes = 1 << 20
	// ratedName is a file that workers write, read and remove again.
	ratedName = "cluster/rate"
)

// edgeRate returns the edges a second of all threads together. Like other rates it is 0 if it
// cannot be measured: rates affect only the speed of the run.
func (s *server) edgeRate(ctx context.Context) float64 {
	budget, err := mem.NewBudget(s.o.Resources.Memory)
	if err != nil {
		return 0
	}
	defer budget.Close()
	threads := max(s.o.Resources.Threads, 1)
	rate, err := machine.EdgeRate(ctx, budget, machine.Options{Threads: threads, Kernel: s.o.Resources.Kernel, Rows: ratedRows})
	if err != nil {
		return 0
	}
	return rate * float64(threads)
}

// storeRate returns the bytes a second of a file of the run directory. It is measured after a
// coordinator works there: before, the folder may belong to anybody, and a folder with a file is no
// new run directory.
func (s *server) storeRate(ctx context.Context) float64 {
	store := s.worker.store
	if _, err := address.Read(ctx, store); err != nil {
		return 0
	}
	if storage.Put(ctx, store.Create, ratedName, make([]byte, ratedBytes)) != nil {
		return 0
	}
	defer func() { _ = store.Remove(ctx, ratedName) }()
	begun := time.Now()
	file, err := store.Open(ctx, ratedName)
	if err != nil {
		return 0
	}
	defer file.Close()
	n, err := io.Copy(io.Discard, io.NewSectionReader(file, 0, ratedBytes))
	if err != nil || n == 0 {
		return 0
	}
	return float64(n) / time.Since(begun).Seconds()
}

// networkRate returns the bytes a second of rows that another worker sends, and the seconds in
// which something small goes to or from it.
func (s *server) networkRate(ctx context.Context, peer string) (rate, delay float64) {
	client, err := s.o.Blocks.Dial(peer)
	if err != nil {
		return 0, 0
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*ratedFor) // includes connecting
	defer cancel()
	var begun time.Time
	var bytes int
	var took time.Duration
	_ = client.Fetch(ctx, remote.RateTicket(), func(_ int64, rows []byte) error {
		if begun.IsZero() {
			begun = time.Now() // the first block has waited for the connection
			return nil
		}
		bytes += len(rows)
		if took = time.Since(begun); took > ratedFor {
			return context.Canceled
		}
		return nil
	})
	if took == 0 {
		return 0, 0
	}
	ticket := remote.RateTicket()
	ticket.Rows = 1
	for range ratedAsks {
		begun := time.Now()
		if client.Fetch(ctx, ticket, func(int64, []byte) error { return nil }) != nil {
			break
		}
		if x := time.Since(begun).Seconds() / 2; delay == 0 || x < delay { // there and back
			delay = x
		}
	}
	return float64(bytes) / took.Seconds(), delay
}
