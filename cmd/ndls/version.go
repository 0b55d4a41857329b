package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := a.command("version", "version, commit, and the kernel in use",
		`version prints what this binary was built from and the kernel it chooses on this
processor.`,
		func(context.Context, *cobra.Command) error {
			kernel, err := ndls.Kernel(a.kernel)
			if err != nil {
				return asUsage(err)
			}
			v := ndls.Versions()
			v["kernel"] = kernel
			v["platform"] = runtime.GOOS + "/" + runtime.GOARCH
			if done, err := a.asJSON(v); done {
				return err
			}
			for _, key := range []string{"ndls", "commit", "modified", "go", "platform", "kernel"} {
				if v[key] != "" {
					fmt.Fprintf(a.stdout, "%-9s %s\n", key, v[key])
				}
			}
			return nil
		})
	cmd.Example = `  ndls version --json`
	return cmd
}
