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

// build names the program: two processes of a run must have the same. The commit is
// not known of a program that was built outside of its repository.
func build() string { return buildOf(Versions()) }

func buildOf(v map[string]string) string {
	name := v["ndls"]
	if commit := v["commit"]; commit != "" {
		name += ", commit " + commit[:min(len(commit), 12)]
	}
	if v["modified"] == "true" {
		name += " with changes"
	}
	return name
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
