package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/vfs"
)

func (a *app) manCommand() *cobra.Command {
	var out string
	var cmd *cobra.Command
	cmd = a.command("man --out DIR", "manual pages of all verbs",
		`man writes what the help of each verb says as manual pages into a folder: ndls.1, ndls-run.1, and so on, and
ndls-datasets.7. make install puts them where man finds them.`,
		func(context.Context, *cobra.Command) error {
			if err := os.MkdirAll(out, 0o777); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			pages := map[string][]byte{} // by name
			root := cmd.Root()
			visitCommands(root, func(cmd *cobra.Command) {
				topic := cmd.IsAdditionalHelpTopicCommand() && cmd.Parent() == root // its parts are on the same page
				if topic || cmd.IsAvailableCommand() || cmd == root {
					section := commandSection
					if topic {
						section = topicSection
					}
					pages[fmt.Sprintf("%s.%d", pageName(cmd), section)] = manPage(cmd, section)
				}
			})
			for name, text := range pages {
				if err := vfs.ReplaceFile(filepath.Join(out, name), text, 0o666); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			return a.lineOr(map[string]any{"out": out, "pages": len(pages)}, "%s: %d pages\n", out, len(pages))
		})
	cmd.Flags().StringVar(&out, "out", "", "folder to write to (required)")
	_ = cmd.MarkFlagRequired("out")
	cmd.Example = `  ndls man --out man && man -l man/ndls-run.1`
	return cmd
}

const (
	commandSection = 1 // of manual pages
	topicSection   = 7
)

// pageName returns the name of the page of a command.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff escapes text for a page.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`)

// optionName finds the name of an option at the beginning of a line of the help, as roff escapes it.
var optionName = regexp.MustCompile(`^( +)((?:\\-\w, )?\\-\\-[\w\\-]+)`)

// manPage returns what the help of a command says in the macros of man(7): line by line, with headings and options in bold.
func manPage(cmd *cobra.Command, section int) []byte {
	var help, page bytes.Buffer
	cmd.SetOut(&help)
	cmd.HelpFunc()(cmd, nil)
	cmd.SetOut(nil)
	const asIs = ".nf\n.in 0\n"
	fmt.Fprintf(&page, ".TH %s %d \"\" \"ndls %s\" \"Manual of ndls\"\n", roff.Replace(strings.ToUpper(pageName(cmd))), section, roff.Replace(ndls.Version))
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n%s", roff.Replace(pageName(cmd)), roff.Replace(cmd.Short), asIs)
	for text := range strings.Lines(help.String()) {
		line := roff.Replace(text)
		heading, _, _ := strings.Cut(strings.TrimSpace(text), ":")
		switch {
		case !strings.HasPrefix(text, " ") && isHeading(heading):
			line = ".SH " + line + asIs
		case strings.HasPrefix(line, "."), strings.HasPrefix(line, "'"): // which would be a request
			line = `\&` + line
		default:
			line = optionName.ReplaceAllString(line, `$1\fB$2\fR`)
		}
		page.WriteString(line)
	}
	if cmd.HasParent() {
		fmt.Fprintf(&page, ".SH SEE ALSO\nndls(%d), ndls\\-datasets(%d)\n", commandSection, topicSection)
	}
	return page.Bytes()
}
