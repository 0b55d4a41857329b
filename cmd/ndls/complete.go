package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/dataset"
	"ndls/plan"
	"ndls/tune"
)

// completer gives the values of an option that begin as a word does.
type completer = cobra.CompletionFunc

// complete tells the shells the values of the options of all verbs, and their arguments. Cobra keeps them as
// long as the process lives, so only a process that a shell asks for words calls it.
func complete(root *cobra.Command) {
	visitCommands(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if values := valuesOf(cmd, f); values != nil {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, values)
			}
		})
		if cmd.ValidArgsFunction == nil && cmd.RunE != nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	})
	for _, verb := range []string{"list", "diff", "report"} {
		if cmd, _, err := root.Find([]string{verb}); err == nil {
			cmd.ValidArgsFunction = folders
		}
	}
}

// visitCommands visits a command and all below it.
func visitCommands(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		visitCommands(c, visit)
	}
}

// valuesOf are the values of an option, nil where any file may stand there.
func valuesOf(cmd *cobra.Command, f *pflag.Flag) completer {
	switch f.Name {
	case "dataset":
		return datasets
	case "run", "train-on", "scratch", "cache", "keys":
		return folders
	case "config":
		return endingIn("yaml", "yml")
	case "out":
		if cmd.Name() == "export" {
			return nil
		}
		return folders
	case "soft-labels":
		return endingIn("arrow", "parquet", "npy", "csv", "txt", "gz")
	case "targets":
		return wordsOrFiles(ndls.OptionValues(f.Name)...)
	case "token-file", "result":
		return nil
	case "kernel":
		return words(kernelNames...)
	case "log-level":
		return words(logLevels...)
	case "what":
		return words(append(ndls.Artifacts(), "ogb-submission")...)
	case "format":
		return words(append(ndls.Formats(), "npz")...)
	case "parallel":
		return words("auto", "columns", "intervals", "grid")
	case "split":
		return unfinished("random:", "share:")
	case "search":
		return words(tune.Random, tune.Grid)
	case "score":
		return words(append([]string{tune.Base, tune.Smoothed, tune.Loss}, plan.MeasureNames...)...)
	case "try":
		return tried
	}
	if f.Value.Type() == "bool" {
		return words("true", "false")
	}
	return words(ndls.OptionValues(f.Name)...)
}

// kernelNames and logLevels are the values of --kernel and --log-level.
var (
	kernelNames = []string{"auto", "avx512", "avx2", "go"}
	logLevels   = []string{"debug", "info", "warn", "error"}
)

// starting returns the words of a list that begin with a text.
func starting(list []string, begin string) []cobra.Completion {
	return slices.DeleteFunc(slices.Clone(list), func(w string) bool { return !strings.HasPrefix(w, begin) })
}

// words are values of which each is complete.
func words(list ...string) completer {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return starting(list, begin), cobra.ShellCompDirectiveNoFileComp
	}
}

// unfinished are values that go on.
func unfinished(list ...string) completer {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return starting(list, begin), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// wordsOrFiles are words, and the names of files.
func wordsOrFiles(list ...string) completer {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return starting(list, begin), cobra.ShellCompDirectiveDefault
	}
}

// endingIn are the names of files with one of some endings.
func endingIn(endings ...string) completer {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// folders are the names of folders.
func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// datasets are the kinds of URI, then files.
func datasets(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const more = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	kind, path, chosen := strings.Cut(begin, ":")
	if !chosen {
		_, kinds := dataset.Formats()
		var list []cobra.Completion
		for _, k := range kinds {
			list = append(list, cobra.CompletionWithDesc(strings.TrimSuffix(k.Name, ":")+":", k.Title))
		}
		return slices.DeleteFunc(list, func(w string) bool { return !strings.HasPrefix(w, begin) }), more
	}
	if strings.ContainsAny(path, "?=") || strings.HasPrefix(path, "//") {
		return nil, more
	}
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean("./" + folder))
	if filepath.IsAbs(folder) {
		entries, err = os.ReadDir(folder)
	}
	if err != nil {
		return nil, more
	}
	var list []cobra.Completion
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") {
			continue
		}
		word := kind + ":" + folder + e.Name()
		if e.IsDir() {
			word += "/"
		}
		list = append(list, word)
	}
	return list, more
}

// tried are the options that ndls tune can try.
func tried(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	name, _, chosen := strings.Cut(begin, "=")
	if !chosen {
		list := []string{tune.DefaultWord}
		for _, n := range tune.Names() {
			list = append(list, n+"=")
		}
		return starting(list, begin), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	var list []string
	for _, value := range ndls.OptionValues(name) {
		list = append(list, name+"="+value)
	}
	return starting(list, begin), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
