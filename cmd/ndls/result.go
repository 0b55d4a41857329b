package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/vfs"
)

// verdict is the line of --result.
type verdict struct {
	// Command is the verb, such as "ndls run".
	Command string `json:"command"`
	// Status is the exit status, and Error the message of a command that failed.
	Status int    `json:"exit_status"`
	Error  string `json:"error,omitempty"`
	// Seconds is the time of the command.
	Seconds float64 `json:"seconds"`
	// Result is the last line that the command prints with --json, whether it was asked for or
	// not. It is null where there is none.
	Result any `json:"result"`
}

// results takes what a command has found: text for people, or a JSON object a line, and FILE of --result.
type results struct {
	stdout io.Writer
	json   bool
	// resultFile is --result, and last what the verb prints last with --json, also without it.
	resultFile string
	last       any
}

// fold has text for people folded where stdout is a terminal, until the returned function is called. What is data, and
// what stays in place on a terminal, is not text.
func (r *results) fold(cmd *cobra.Command) (end func()) {
	width := columns(r.stdout)
	if width == nil || r.json || cmd.Name() == "export" {
		return func() {}
	}
	before, folded := r.stdout, newFolding(r.stdout, width)
	r.stdout = folded
	return func() {
		_ = folded.Flush() // checked knows of an error
		r.stdout = before
	}
}

// asJSON prints v with --json, and reports whether it has. Without --json the caller prints text; --result
// has v in either case.
func (r *results) asJSON(v any) (done bool, err error) {
	r.last = v
	if !r.json {
		return false, nil
	}
	return true, r.line(v)
}

// jsonOr writes v as a line of JSON if the command asks for that, and else what text writes.
func (r *results) jsonOr(v any, text func(w io.Writer) error) error {
	if done, err := r.asJSON(v); done {
		return err
	}
	return text(r.stdout)
}

// lineOr prints v with --json, and the text without.
func (r *results) lineOr(v any, format string, args ...any) error {
	return r.jsonOr(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	})
}

// line prints v as one line of JSON.
func (r *results) line(v any) error {
	r.last = v
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.stdout, "%s\n", text)
	return err
}

// prepare sees to it that FILE of --result can be written, and removes what an earlier command has left
// there: a process that is killed leaves no file.
func (r *results) prepare() error {
	if r.resultFile == "" {
		return nil
	}
	if info, err := os.Stat(r.resultFile); err == nil && info.IsDir() {
		return fmt.Errorf("--result %s is a folder; name a file", r.resultFile)
	}
	if !isFile(r.resultFile) {
		return nil
	}
	if err := vfs.WriteFile(r.resultFile, nil, 0o666); err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	if err := vfs.Remove(r.resultFile); err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	return nil
}

// writeVerdict writes the line of --result.
func (r *results) writeVerdict(command string, begun time.Time, err error) error {
	if r.resultFile == "" {
		return nil
	}
	v := verdict{Command: command, Status: ndls.ExitStatus(err), Seconds: time.Since(begun).Seconds(), Result: r.last}
	if err != nil && !errors.Is(err, ndls.ErrDiffer) {
		v.Error = ndls.Message(err)
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = replace(r.resultFile, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	return nil
}

// isFile reports whether a path names an ordinary file, or nothing yet.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular()
}

// replace writes a file in one step, and to a pipe or a device.
func replace(path string, text []byte) error {
	if isFile(path) {
		return vfs.ReplaceFile(path, text, 0o666)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// givenResult is FILE of --result on a command line that could not be read to its end.
func givenResult(args []string) string {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if file, ok := strings.CutPrefix(arg, "--result="); ok {
			return file
		}
		if arg == "--result" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv(ndls.Variable("result"))
}
