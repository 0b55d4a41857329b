package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// labProgram has the verbs that measure, and those that make the tables of the paper. It stands beside this program, or
// on PATH.
const labProgram = "ndls-lab"

// labCommand makes a verb that labProgram has: this process becomes that program, with the same arguments.
func (a *app) labCommand(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " [ARGUMENT]...", Short: short, DisableFlagParsing: true, // the other program reads its options
		Long: fmt.Sprintf(`%[1]s starts the program %[2]s with the same arguments, and takes the options of that
program: "ndls %[1]s --help" lists them. "make lab" builds it from the sources, to build/%[2]s. It is
looked for in the folder of this program, then on PATH.`, verb, labProgram),
		RunE: func(_ *cobra.Command, args []string) error {
			a.started = true
			self, err := os.Executable()
			if err != nil {
				return err
			}
			lab, err := exec.LookPath(filepath.Join(filepath.Dir(self), labProgram))
			if err != nil {
				lab, err = exec.LookPath(labProgram)
			}
			if err != nil {
				return asUsage(fmt.Errorf("ndls %s needs the program %s, which is neither beside this program nor on PATH. Build it in a copy of the repository: make lab, which writes build/%[2]s", verb, labProgram))
			}
			return syscall.Exec(lab, append([]string{lab, verb}, args...), os.Environ())
		},
	}
}
