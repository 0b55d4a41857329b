package source

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ndls/dataset/graph"
)

func (fs *Files) Notes() []graph.Note { return fs.notes }

// Note adds notes; those without text are none, and each is added once.
func (fs *Files) Note(notes ...graph.Note) {
	for _, n := range notes {
		if n.Text != "" && !slices.Contains(fs.notes, n) {
			fs.notes = append(fs.notes, n)
		}
	}
}

// Input is a file that a dataset is read from.
type Input struct {
	// Path is the file as the URI names it, with the folder of the URI where that
	// names a folder.
	Path     string
	Size     int64
	Modified time.Time
	// Device, Inode and Changed, the time of the last change of the file or of what is known of it, are the
	// same later if and only if nobody has written to the file or put another one in its place. They are zero where
	// that is not certain.
	Device, Inode uint64
	Changed       time.Time
	// Version changes when a file of an object store is replaced; others have none.
	Version string
	// Digest identifies the bytes of the file ([Sum]). It is empty before [dataset.Digest]
	// has read the file, and for files with a version.
	Digest string
}

// Inputs lists the files that were opened, each once.
func (fs *Files) Inputs() ([]Input, error) {
	var inputs []Input
	known := map[string]bool{}
	for _, f := range fs.opened {
		if known[f.Name()] {
			continue
		}
		known[f.Name()] = true
		in := Input{Path: f.Name(), Size: f.Size(), Version: f.version}
		if f.version == "" {
			var err error
			if in, err = Stat(f.Name()); err != nil {
				return nil, err
			}
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// Stat describes a file that is read.
func Stat(path string) (Input, error) {
	now := time.Now()
	st, err := os.Stat(path)
	if err != nil {
		return Input{}, err
	}
	in := Input{Path: path, Size: st.Size(), Modified: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		// Images of file systems that are made to be the same each time have whole seconds.
		if changed := time.Unix(sys.Ctim.Unix()); changed.Nanosecond() != 0 && now.Sub(changed) >= settled && keepsTime(path) {
			in.Device, in.Inode, in.Changed = sys.Dev, sys.Ino, changed
		}
	}
	return in, nil
}

// settled is the least time since the last change of a file: within one tick of the clock of a file
// system, which is a second for some, it may change again without another time.
const settled = 2 * time.Second

// keepers are the file systems whose kernel sets the time of the last change of a file at every change, and lets nobody
// set it. Others have it from an image, as squashfs and ISO 9660, from a server, as NFS, from a program, as FUSE, or from what is
// below them, as overlayfs.
var keepers = []int64{
	unix.EXT4_SUPER_MAGIC, // ext2 and ext3, too
	unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	0x2fc12fc1, // ZFS
	0xca451a4e, // bcachefs
}

// keepsTime reports whether a file is on one of keepers.
func keepsTime(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Flags&unix.MS_RDONLY == 0 && slices.Contains(keepers, int64(uint32(s.Type)))
}

// countLines counts the lines of a text that end before byte end.
func (s *Source) countLines(ctx context.Context, end int64) (n int64) {
	if end == 0 {
		return 0
	}
	st, err := s.OpenText(ctx, 0)
	if err != nil {
		return 0
	}
	defer st.Close()
	buf := make([]byte, BufferSize)
	for end > 0 {
		got, err := st.Read(buf[:min(int64(len(buf)), end)])
		n += int64(bytes.Count(buf[:got], []byte{'\n'}))
		end -= int64(got)
		if err != nil {
			break
		}
	}
	return n
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
