package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ndls/spmv"
)

// version is set at release with -ldflags "-X main.version=…".
var version = "0.1.0-dev"

// versions says what wrote a run: ndls, its commit where known, and Go.
func versions() map[string]string {
	v := map[string]string{"ndls": version, "go": runtime.Version()}
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

func (a *app) versionCommand() *cobra.Command {
	return a.command("version", "version, commit, and the kernel in use",
		`version prints what this binary was built from and the kernel it chooses on this
processor.`,
		func(context.Context, *cobra.Command) error {
			kernel, err := spmv.Select(a.kernel)
			if err != nil {
				return asUsage(err)
			}
			v := versions()
			v["kernel"] = kernel.Name()
			v["platform"] = runtime.GOOS + "/" + runtime.GOARCH
			if a.json {
				return a.line(v)
			}
			for _, key := range []string{"ndls", "commit", "modified", "go", "platform", "kernel"} {
				if v[key] != "" {
					fmt.Fprintf(a.stdout, "%-9s %s\n", key, v[key])
				}
			}
			return nil
		})
}
