package ndls

import (
	"runtime"
	"runtime/debug"

	"ndls/spmv"
)

// Version is set at release with -ldflags "-X ndls.Version=…".
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

// Kernel is the name of the kernel that "auto" or another name of one stands for on
// this processor.
func Kernel(name string) (string, error) {
	k, err := spmv.Select(name)
	if err != nil {
		return "", err
	}
	return k.Name(), nil
}
