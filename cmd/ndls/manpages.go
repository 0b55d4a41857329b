package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/cmd/ndls/man"
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
			pages := manPages(cmd.Root())
			for _, p := range pages {
				var text bytes.Buffer
				if err := p.Write(&text); err != nil {
					return err
				}
				name := fmt.Sprintf("%s.%d", p.Name, p.Section)
				if err := vfs.ReplaceFile(filepath.Join(out, name), text.Bytes(), 0o666); err != nil {
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

// manPages returns the pages of a command and of all below it.
func manPages(root *cobra.Command) (pages []man.Page) {
	visitCommands(root, func(cmd *cobra.Command) {
		switch {
		case cmd.IsAdditionalHelpTopicCommand():
			if cmd.Parent() == root { // its parts are on the same page
				pages = append(pages, topicPage(cmd))
			}
		case cmd.IsAvailableCommand() || cmd == root:
			pages = append(pages, commandPage(cmd))
		}
	})
	return pages
}

// pageName is the name of the page of a command.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// reference is a command as other pages name it.
func reference(cmd *cobra.Command) string {
	section := commandSection
	if cmd.IsAdditionalHelpTopicCommand() {
		section = topicSection
	}
	return fmt.Sprintf("%s(%d)", pageName(cmd), section)
}

// topicPage is the page of what the help says beside verbs. It is in Markdown, and stays as it is.
func topicPage(cmd *cobra.Command) man.Page {
	lines := strings.Split(strings.TrimSpace(cmd.Long), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = " " + l
		}
	}
	return man.Page{
		Name: pageName(cmd), Section: topicSection, Title: cmd.Short, Source: "ndls " + ndls.Version,
		Description: strings.Join(lines, "\n"), SeeAlso: []string{reference(cmd.Root())},
	}
}

func commandPage(cmd *cobra.Command) man.Page {
	p := man.Page{
		Name: pageName(cmd), Section: commandSection, Title: cmd.Short, Source: "ndls " + ndls.Version,
		Synopsis: cmd.UseLine(), Description: cmd.Long, Examples: cmd.Example,
	}
	for _, g := range commandGroups(cmd) {
		part := man.Part{Heading: g.heading}
		for _, c := range g.commands {
			part.Items = append(part.Items, man.Item{Word: reference(c), Text: c.Short})
		}
		p.Commands = append(p.Commands, part)
	}
	for _, g := range optionGroups(cmd) {
		group := man.Group{Heading: g.heading}
		if g.heading == groupVerb { // the section is called so
			if group.Heading = ""; len(p.Groups) > 0 {
				group.Heading = "OF THIS COMMAND"
			}
		}
		g.set.VisitAll(func(f *pflag.Flag) { group.Options = append(group.Options, manOption(f)) })
		p.Groups = append(p.Groups, group)
	}
	p.Parts = []man.Part{{Heading: "ENVIRONMENT", Text: strings.ReplaceAll(aboutVariables, "  ", "")}}
	statuses := man.Part{Heading: "EXIT STATUS"}
	for _, x := range ndls.Exits {
		statuses.Items = append(statuses.Items, man.Item{Word: strconv.Itoa(x.Status), Text: x.Meaning})
	}
	p.Parts = append(p.Parts, statuses)
	if parent := cmd.Parent(); parent != nil {
		p.SeeAlso = append(p.SeeAlso, reference(parent))
	}
	if cmd.Flags().Lookup("dataset") != nil {
		if topic, _, err := cmd.Root().Find([]string{"datasets"}); err == nil {
			p.SeeAlso = append(p.SeeAlso, reference(topic))
		}
	}
	return p
}

// manOption is an option with its default.
func manOption(f *pflag.Flag) man.Option {
	value, text := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		text += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	return man.Option{Name: f.Name, Value: value, Text: text}
}
