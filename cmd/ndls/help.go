package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
)

// The groups in which the help lists options, by the stage that they are of.
const (
	groupRun       = "RUN"
	groupVerb      = "OPTIONS"
	groupPartition = "PARTITION: the import and the cut into shards"
	groupLSI       = "LSI: how many hops each node gets"
	groupSmooth    = "SMOOTH: the smoothed features"
	groupTrain     = "TRAIN: the classifier"
	groupLabels    = "LABELS: smoothing of what the classifier says"
	groupCommon    = "COMMON"
	groupExpert    = "EXPERT: none of these changes results"
)

var groups = []string{groupRun, groupVerb, groupPartition, groupLSI, groupSmooth, groupTrain, groupLabels, groupCommon, groupExpert}

// groupKey is the annotation of a flag that holds its group.
const groupKey = "group"

// inGroup puts flags into a group of the help.
func inGroup(f *pflag.FlagSet, group string, names ...string) {
	for _, name := range names {
		_ = f.SetAnnotation(name, groupKey, []string{group})
	}
}

// completions are the shells that a script is made for: what it needs there, the line that loads it, and the file of lines
// with which such a shell begins.
var completions = map[string]struct{ needs, load, file string }{
	"bash": {", which needs the package bash-completion", "source <(ndls completion bash)", "~/.bashrc"},
	"zsh":  {", behind autoload -U compinit; compinit", "source <(ndls completion zsh)", "~/.zshrc"},
	"fish": {"", "ndls completion fish | source", "~/.config/fish/config.fish"},
}

// ownWords gives the commands that cobra brings the words of the others: completion, and help, which takes an unknown
// command for an error.
func ownWords(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Short = "a script that completes commands and values, for bash, zsh or fish"
			for _, shell := range c.Commands() {
				about, known := completions[shell.Name()]
				if !known {
					c.RemoveCommand(shell)
					continue
				}
				shell.Short = "the script for " + shell.Name()
				shell.Long = "A script that completes commands, options and values in " + shell.Name() + about.needs +
					".\nThe first line below is for the shell that runs, the second one for those that begin later."
				shell.Example = "  " + about.load + "\n  echo '" + about.load + "' >> " + about.file
			}
		case "help":
			c.Use, c.Short, c.Long = "help [COMMAND]...", "help of a command or a topic", "help prints what COMMAND --help prints, and topics such as datasets."
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				cmd, rest, err := root.Find(args)
				if err == nil && len(rest) > 0 {
					err = fmt.Errorf(unknownVerb+" %q", rest[0], cmd.CommandPath())
				}
				if err != nil {
					return fmt.Errorf("%w%s", err, suggestion(cmd, err))
				}
				cmd.InitDefaultHelpFlag()
				cmd.InitDefaultVersionFlag()
				return cmd.Help()
			}
		}
	}
}

// help prints what a verb does, examples, its options by stage and the exit statuses.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	width := helpColumns(w)
	fmt.Fprintf(w, "%s\nUSAGE\n", paragraphs(strings.TrimSpace(cmd.Long), width))
	for _, line := range hanging("  ", 6, cmd.UseLine(), width) {
		fmt.Fprintln(w, line)
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nEXAMPLES\n")
		for line := range strings.Lines(cmd.Example) {
			fmt.Fprintln(w, strings.Join(fold(strings.TrimRight(line, "\n"), width), "\n"))
		}
	}
	for _, g := range commandGroups(cmd) {
		fmt.Fprintf(w, "\n%s\n", g.heading)
		for _, c := range g.commands {
			item(w, c.Name(), 14, c.Short, width)
		}
	}
	printOptions(w, cmd, width)
	fmt.Fprintf(w, "\nENVIRONMENT\n")
	for _, line := range hanging("  ", 2, aboutVariables, width) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "\nEXIT STATUS\n")
	for _, x := range ndls.Exits {
		item(w, strconv.Itoa(x.Status), 4, x.Meaning, width)
	}
}

// verbs are the commands below ndls in the order in which the help lists them.
var verbs = []struct {
	heading string
	names   []string
}{
	{"COMMANDS: the whole job", []string{"demo", "inspect", "plan", "run", "status", "tune", "infer", "reproduce"}},
	{"COMMANDS: what came out", []string{"list", "serve", "report", "explain", "diff", "export", "verify", "gc"}},
	{"COMMANDS: the stages of a run, one by one", []string{
		"partition", "degrees", "spectrum", "lsi", "smooth", "train",
		"smooth-labels", "evaluate",
	}},
	{"COMMANDS: several machines", []string{"cluster-keys", "coordinator", "worker"}},
	{"COMMANDS: more", []string{"datasets", "generate", "bench", "completion", "man", "version"}},
}

// commandGroup is some commands under a heading.
type commandGroup struct {
	heading  string
	commands []*cobra.Command
}

// commandGroups are the commands below cmd, as help lists them.
func commandGroups(cmd *cobra.Command) (list []commandGroup) {
	var all commandGroup
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			all.commands = append(all.commands, c)
		}
	}
	if len(all.commands) == 0 {
		return nil
	}
	if cmd != cmd.Root() {
		all.heading = "COMMANDS"
		return []commandGroup{all}
	}
	listed := 0
	for _, group := range verbs {
		g := commandGroup{heading: group.heading}
		for _, name := range group.names {
			if i := slices.IndexFunc(all.commands, func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
				g.commands = append(g.commands, all.commands[i])
			}
		}
		listed += len(g.commands)
		list = append(list, g)
	}
	if listed != len(all.commands) {
		panic("the help lists not every command once")
	}
	return list
}

// optionGroup is some options under a heading.
type optionGroup struct {
	heading string
	set     *pflag.FlagSet
}

// optionGroups are the flags of cmd by group, in the order of groups.
func optionGroups(cmd *cobra.Command) (list []optionGroup) {
	sets := map[string]*pflag.FlagSet{}
	put := func(standard string) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			group := standard
			if g := f.Annotations[groupKey]; len(g) > 0 {
				group = g[0]
			}
			if sets[group] == nil {
				sets[group] = pflag.NewFlagSet(group, pflag.ContinueOnError)
			}
			if sets[group].Lookup(f.Name) == nil {
				sets[group].AddFlag(f)
			}
		}
	}
	inherited := cmd.InheritedFlags()
	if cmd == cmd.Root() {
		inherited = cmd.PersistentFlags()
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Name == "version" || inherited.Lookup(f.Name) != nil {
			put(groupCommon)(f)
		} else {
			put(groupVerb)(f)
		}
	})
	inherited.VisitAll(put(groupCommon))
	for _, group := range groups {
		if set := sets[group]; set != nil {
			list = append(list, optionGroup{group, set})
		}
	}
	for group := range sets {
		if !slices.Contains(groups, group) {
			panic("no group of the help: " + group)
		}
	}
	return list
}

// printOptions lists the flags of cmd by group.
func printOptions(w io.Writer, cmd *cobra.Command, width int) {
	for _, g := range optionGroups(cmd) {
		fmt.Fprintf(w, "\n%s\n%s", g.heading, g.set.FlagUsagesWrapped(width))
	}
}
