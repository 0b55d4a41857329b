package ndls

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"ndls/internal/vfs"
	"ndls/spmv"
)

// Version is the version of this source. `go run ./changelog -release` sets it here for a release;
// builds set nothing.
var Version = "0.1.0-dev"

// Versions says what this program was made from: the versions of ndls and Go, and the
// commit where that is known.
func Versions() map[string]string {
	v := map[string]string{"ndls": Version, "go": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v["commit"] = s.Value
			case "vcs.modified":
				v["modified"] = s.Value
			}
		}
	}
	return v
}

// build names the program: two processes of a run must have the same.
var build = sync.OnceValue(func() string { return buildOf(Versions(), contents) })

// buildOf names a program by its version and commit. Where it was built from a changed tree,
// or outside of its repository, these say too little: what contents says of it comes to that.
func buildOf(v map[string]string, contents func() string) string {
	name := v["ndls"]
	commit, modified := v["commit"], v["modified"] == "true"
	if commit != "" {
		name += ", commit " + commit[:min(len(commit), 12)]
	}
	if modified {
		name += " with changes"
	}
	if commit == "" || modified {
		name += ", program " + contents()
	}
	return name
}

// contents names what the program that runs was linked from: the end of the build ID that the go
// command writes into it, which is a hash of the program. A program without one is hashed here,
// which takes longer than a small run. The kernel has the file open, also where it was replaced
// since.
func contents() string {
	f, err := vfs.OpenFile("/proc/self/exe", os.O_RDONLY, 0)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	if id := buildID(f); id != "" {
		return id
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, math.MaxInt64)); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(sum.Sum(nil))[:contentsLength]
}

// contentsLength is the number of letters of a hash that name a program.
const contentsLength = 12

// buildID returns the beginning of the last part of a program's build ID, or "" if it has none. The
// linker puts the ID into a note of type 4 with the name "Go" in the first page of the file. A note
// is three numbers of 32 bits (length of the name, length of the ID, type), the name and the ID.
func buildID(program io.ReaderAt) string {
	page := make([]byte, 4096)
	n, _ := program.ReadAt(page, 0)
	name := []byte("\x04\x00\x00\x00Go\x00\x00")
	at := bytes.Index(page[:n], name)
	if at < 4 {
		return ""
	}
	id := page[at+len(name) : n]
	id = id[:min(int(binary.LittleEndian.Uint32(page[at-4:])), len(id))]
	slash := bytes.LastIndexByte(id, '/')
	if slash < 0 || len(id)-slash <= contentsLength {
		return ""
	}
	return string(id[slash+1:][:contentsLength])
}

// Kernel is the name of the kernel that "auto" or another name of one stands for on
// this processor.
func Kernel(name string) (string, error) {
	k, err := spmv.Select(name)
	if err != nil {
		return "", err
	}
	return k.Name(), nil
}
