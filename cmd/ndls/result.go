package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

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

// prepareResult sees to it that FILE of --result can be written, and removes what an earlier command has left
// there: a process that is killed leaves no file.
func (a *app) prepareResult() error {
	if a.resultFile == "" {
		return nil
	}
	if info, err := os.Stat(a.resultFile); err == nil && info.IsDir() {
		return fmt.Errorf("--result %s is a folder; name a file", a.resultFile)
	}
	if !isFile(a.resultFile) {
		return nil
	}
	if err := vfs.WriteFile(a.resultFile, nil, 0o666); err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	if err := vfs.Remove(a.resultFile); err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	return nil
}

// writeResult writes the line of --result.
func (a *app) writeResult(command string, begun time.Time, err error) error {
	if a.resultFile == "" {
		return nil
	}
	v := verdict{Command: command, Status: ndls.ExitStatus(err), Seconds: time.Since(begun).Seconds(), Result: a.last}
	if err != nil && !errors.Is(err, ndls.ErrDiffer) {
		v.Error = ndls.Message(err)
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = replace(a.resultFile, append(text, '\n'))
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
