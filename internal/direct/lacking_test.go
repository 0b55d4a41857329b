package direct

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// TestTransfersThatAreRefused writes and reads files where direct I/O is opened and then refused, by any
// transfer or by those that are not aligned to large blocks: they are buffered from then on, and have the
// same bytes.
func TestTransfersThatAreRefused(t *testing.T) {
	const disk = "/disks/refused"
	content := make([]byte, 5<<20+12345)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	for name, lacks := range map[string]vfstest.Lacks{
		"none":           {},
		"EINVAL":         {Direct: syscall.EINVAL},
		"EOPNOTSUPP":     {Direct: syscall.EOPNOTSUPP},
		"large blocks":   {DirectAlign: 64 << 10},
		"larger blocks":  {DirectAlign: 2 << 20},
		"at the opening": {OpenDirect: syscall.EOPNOTSUPP},
		"and nothing to wait for": {
			Direct: syscall.EINVAL, WriteOut: syscall.ENOSYS, Punch: syscall.EOPNOTSUPP, RemoveOpen: syscall.EBUSY,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := vfstest.NewMem(disk)
			defer vfs.Mount(disk, vfstest.Lacking(m, lacks))()
			w, err := Create(disk + "/file")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
			if err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			f, err := Open(disk + "/file")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Size() != int64(len(content)) {
				t.Fatalf("the file has %d bytes, not %d", f.Size(), len(content))
			}
			q := NewQueue()
			defer q.Close()
			for _, r := range [][2]int64{{0, BufferSize}, {4096, 8192}, {100, 5000}, {5 << 20, 12345}, {64 << 10, 64 << 10}, {5<<20 + 1, 20000}} {
				want := content[r[0]:min(r[0]+r[1], int64(len(content)))]
				p := AlignedBytes(int(r[1]))
				n, err := f.ReadAt(p, r[0])
				if !bytes.Equal(p[:n], want) || err != nil && err != io.EOF {
					t.Errorf("bytes %d of %d: %d other ones, %v", r[1], r[0], n, err)
				}
				p = AlignedBytes(int(r[1]))
				q.Start(0, f, p, r[0])
				if n, err := q.Wait(0); !bytes.Equal(p[:n], want) || err != nil && err != io.EOF {
					t.Errorf("bytes %d of %d in a queue: %d other ones, %v", r[1], r[0], n, err)
				}
			}
			s, err := NewScratch(disk)
			if err != nil {
				t.Fatal(err)
			}
			page, back := AlignedBytes(Align), AlignedBytes(Align)
			copy(page, content)
			if err := s.WriteAt(page, 3*Align); err != nil {
				t.Error(err)
			}
			if err := s.ReadAt(back, 3*Align); err != nil || !bytes.Equal(page, back) {
				t.Errorf("scratch has other bytes, %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if left, err := vfs.ReadDir(disk); err != nil || len(left) != 1 {
				t.Errorf("%d files are there, %v", len(left), err)
			}
		})
	}
}

// TestNoTruncate needs none where nothing is padded.
func TestNoTruncate(t *testing.T) {
	const disk = "/disks/truncate"
	for _, lacks := range []vfstest.Lacks{{Truncate: syscall.EPERM, OpenDirect: syscall.EINVAL}, {Truncate: syscall.EPERM}} {
		func() {
			defer vfs.Mount(disk, vfstest.Lacking(vfstest.NewMem(disk), lacks))()
			w, err := Create(disk + "/file")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if err := w.Finish(); (err != nil) != (lacks.OpenDirect == 0) || err != nil && !errors.Is(err, syscall.EPERM) {
				t.Errorf("%+v: %v", lacks, err)
			}
		}()
	}
}
