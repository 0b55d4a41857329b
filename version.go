package ndls

import (
	"crypto/sha256"
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

// contents is the beginning of the SHA-256 of the program that runs. The kernel has it open,
// also where the file was replaced since.
func contents() string {
	f, err := vfs.OpenFile("/proc/self/exe", os.O_RDONLY, 0)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, math.MaxInt64)); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
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
