package source

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

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
	// Version changes when a file of an object store is replaced; others have none.
	Version string
	// SHA256 is the digest of the file in hexadecimal, empty until it is asked for, and
	// for files with a version.
	SHA256 string
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
		in, err := Stat(f.Name())
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	for _, in := range fs.remote {
		if !known[in.Path] {
			known[in.Path] = true
			inputs = append(inputs, in)
		}
	}
	return inputs, nil
}

func Stat(path string) (Input, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Input{}, err
	}
	return Input{Path: path, Size: st.Size(), Modified: st.ModTime()}, nil
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
