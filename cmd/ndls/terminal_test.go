package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ndls"
)

// openTerminal makes a pseudo-terminal of a size: what a process writes to user is read from screen.
func openTerminal(t *testing.T, columns, rows int) (screen, user *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		user, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	resize(t, user, columns, rows)
	return screen, user
}

func resize(t *testing.T, user *os.File, columns, rows int) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
}

// onTerminal runs a command line whose stderr, and stdout where that is asked for, is a
// terminal, and returns what that was sent.
func onTerminal(t *testing.T, columns, rows int, outToo bool, args ...string) (sent string, code int) {
	t.Helper()
	screen, user := openTerminal(t, columns, rows)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=")
	cmd.Stderr = user
	if outToo {
		cmd.Stdout = user
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&text, screen) // ends with an error when the last process has closed the terminal
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_ = user.Close()
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Fatal("the terminal is still open")
	}
	return text.String(), cmd.ProcessState.ExitCode()
}

// barGone removes the bar.
const barGone = "\r\x1b[K"

// TestBarOnTerminals: on a terminal of any width, the bar stays on one row, says what is left, and is
// gone at the end.
func TestBarOnTerminals(t *testing.T) {
	dataset := "synthetic:nodes=20000,edges=200000,features=32,classes=4,seed=1"
	for _, columns := range []int{24, 40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			sent, code := onTerminal(t, columns, 24, false,
				"run", "--dataset", dataset, "--run", run, "--memory", "512MiB", "--runs", "2", "--epochs", "40", "--label-depth", "4", "--threads", "1", "--probes", "512")
			if code != 0 {
				t.Fatalf("status %d:\n%q", code, sent)
			}
			bars := 0
			chunks := strings.Split(sent, barGone)
			for _, chunk := range chunks[1:] {
				if strings.Contains(chunk, "\n") { // lines of the log, which may be longer
					continue
				}
				if chunk != "" {
					bars++
				}
				if n := utf8.RuneCountInString(chunk); n >= columns || strings.ContainsAny(chunk, "\x1b\r") {
					t.Errorf("a bar of %d characters: %q", n, chunk)
				}
			}
			last := chunks[len(chunks)-1]
			if bars < 5 || last != "" && !strings.HasSuffix(last, "\n") {
				t.Errorf("%d bars; at the end stands %q", bars, last)
			}
			if !regexp.MustCompile(`hop \d+ of at most 200`).MatchString(sent) {
				t.Errorf("lsi does not say at which hop it is")
			}
			if columns >= 40 && !regexp.MustCompile(`, ~?\d+s left`).MatchString(sent) {
				t.Errorf("no stage says how long it still takes")
			}
			if columns >= 80 && !strings.Contains(sent, "; job ") {
				t.Errorf("nothing is said of the time of the job")
			}
		})
	}
}

// TestNoBarWithoutTerminal: neither a pipe nor a dumb terminal gets what only terminals obey.
func TestNoBarWithoutTerminal(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", toy, "--run", run, "--memory", "512MiB", "--runs", "1", "--epochs", "5"}
	if r := expect(t, 0, "", args...); strings.ContainsAny(r.stderr+r.stdout, "\x1b\r") {
		t.Errorf("%q", r.stderr)
	}
}

// TestWatchOnTerminal: the view stays in place, and ends with the run.
func TestWatchOnTerminal(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", run}, quickly...)...)
	sent, code := onTerminal(t, 30, 5, true, "status", "--run", run, "--watch")
	if code != 0 {
		t.Fatalf("status %d: %q", code, sent)
	}
	lines := strings.Split(strings.TrimSuffix(sent, "\r\n"), "\r\n")
	if len(lines) != 4 {
		t.Errorf("%d lines on 5 rows: %q", len(lines), sent)
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) >= 30 {
			t.Errorf("a line of %d characters on 30 columns: %q", utf8.RuneCountInString(l), l)
		}
	}
}

// TestScreen: a second text takes the place of the first one.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{w: &out, size: func() (int, int) { return 10, 4 }}
	for _, text := range []string{"one\ntwo\nthree\nfour\nfive\n", "a line that is long\n", "end\n"} {
		if err := s.show(text); err != nil {
			t.Fatal(err)
		}
	}
	if want := "one\ntwo\nthree\n" + "\x1b[3A\r\x1b[J" + "a line th\n" + "\x1b[1A\r\x1b[J" + "end\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	out.Reset()
	s = &screen{w: &out}
	for _, text := range []string{"one\n", "one\n", "two\n"} {
		if err := s.show(text); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "one\ntwo\n" {
		t.Errorf("without a terminal: %q", &out)
	}
}

// TestWatch follows a run to its end, and says by its status how that was.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	expect(t, 0, "", append([]string{"partition", "--dataset", toy, "--run", run}, "--memory", "512MiB", "--quiet")...)
	cmd := exec.Command(binary, "run", "--dataset", toy, "--run", run, "--memory", "512MiB", "--runs", "1", "--epochs", "100000", "--patience", "0", "--batch-size", "64", "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	training := func() bool {
		r := command(t, "status", "--run", run, "--json")
		return strings.Contains(r.stdout, `"working":true`) && strings.Contains(r.stdout, `{"stage":"train","state":"RUNNING"}`)
	}
	for begun := time.Now(); !training(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("training has not begun")
		}
	}
	if r := command(t, "list", run); !strings.Contains(r.stdout, "in train") {
		t.Errorf("list of a run that goes on:\n%s", r.stdout)
	}
	watch := exec.Command(binary, "status", "--run", run, "--watch", "--interval", "50ms")
	var out, errs bytes.Buffer
	watch.Stdout, watch.Stderr = &out, &errs
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = watch.Wait()
	if code := watch.ProcessState.ExitCode(); code != ndls.ExitError || !strings.Contains(out.String(), "a process works on it") || !strings.Contains(errs.String(), "is STOPPED: interrupted") {
		t.Errorf("status %d\n%s\n%s", code, &out, &errs)
	}
	// The processes of --workers share a token that no other process has.
	shared := exec.Command(binary, "run", "--dataset", toy, "--run", run, "--memory", "512MiB", "--workers", "1", "--runs", "1", "--epochs", "100000", "--patience", "0", "--batch-size", "64", "--quiet")
	if err := shared.Start(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for !training() && time.Since(begun) < time.Minute {
		time.Sleep(50 * time.Millisecond)
	}
	expect(t, 0, "a process works on it", "status", "--run", run)
	if err := shared.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = shared.Wait()
	expect(t, 0, "stopped in train", "list", run)
	expect(t, ndls.ExitUsage, "--interval", "status", "--run", run, "--watch", "--interval", "0s")
}

// TestFitsTerminal: no line of a help, a table or a message is longer than a terminal of 80 columns.
func TestFitsTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	const wide = 80
	a := newApp(io.Discard, io.Discard)
	lines := [][]string{
		{"run", "--dataset", toy, "--run", "a", "--memory", "512MiB", "--epochs", "20", "--runs", "2"},
		{"run", "--dataset", "karate:", "--run", "b"},
		{"list", "."},
		{"diff", "a", "b"},
		{"inspect", "a"},
		{"inspect", "--dataset", toy},
		{"plan", "--nodes", "1000000", "--edges", "30000000", "--features", "20", "--classes", "4", "--measure=false"},
		{"explain", "a", "--node", "5"},
		{"status", "a"},
		{"verify", "a"},
		{"degrees", "a"},
		{"run", "a", "--runs", "3"},
		{"datasets", "--help"},
	}
	visitCommands(a.root(), func(cmd *cobra.Command) {
		if cmd.IsAvailableCommand() || cmd == cmd.Root() {
			lines = append(lines, append(strings.Fields(cmd.CommandPath())[1:], "--help"))
		}
	})
	if len(lines) < 40 {
		t.Fatalf("%d command lines", len(lines))
	}
	for _, args := range lines {
		sent, _ := onTerminal(t, wide, 24, true, args...)
		if len(sent) < 20 || strings.Contains(sent, "panic") {
			t.Errorf("ndls %s: %q", strings.Join(args, " "), sent)
		}
		for line := range strings.Lines(strings.ReplaceAll(sent, "\r\n", "\n")) {
			line = strings.TrimSuffix(line[strings.LastIndex(line, barGone)+1:], "\n")
			line = colour.ReplaceAllString(strings.TrimPrefix(line, barGone[1:]), "")
			if n := utf8.RuneCountInString(line); n > wide && (slices.Contains(args, "--help") || strings.Contains(strings.TrimSpace(line), " ")) { // a word of a user, such as a URI, stays whole
				t.Errorf("ndls %s: a line of %d characters: %q", strings.Join(args, " "), n, line)
			}
		}
	}
	// What goes to a pipe is complete.
	if r := expect(t, 0, "", "list", "."); !strings.Contains(r.stdout, "train=0.1,valid=0.1,noise=1") || strings.Contains(r.stdout, "…") {
		t.Errorf("the list in a pipe is cut:\n%s", r.stdout)
	}
	r := expect(t, 0, "", "run", "a", "--memory", "512MiB")
	if !strings.Contains(r.stderr, "planned | measured") || !strings.Contains(r.stderr, "level=INFO") {
		t.Errorf("a pipe gets another log:\n%s", r.stderr)
	}
}

// TestEndOfARun: on a terminal a run tells of each stage in a line, then what stages took, and at the end the time of
// all and where the report is. With --log-level the log is as it is elsewhere.
func TestEndOfARun(t *testing.T) {
	t.Chdir(t.TempDir())
	sent, code := onTerminal(t, 80, 24, true, "run", "--dataset", toy, "--run", "a", "--memory", "512MiB", "--epochs", "20", "--runs", "2")
	for _, want := range []string{
		`✓\x1b\[0m lsi +\d+\.\d s  mean K \d+\.\d\d, largest \d+\r\n`, `✓\x1b\[0m evaluate +\d+\.\d s  test accuracy \d+\.\d\d %\r\n`,
		`stage +time +peak memory\r\n`, ` lsi +\d+\.\d s +\d+\.\d MiB\r\n`, `\d s in all; report: a/report.html\r\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(sent) || code != 0 {
			t.Errorf("no %s in\n%s", want, sent)
		}
	}
	if strings.Contains(sent, "level=") || strings.Contains(sent, "planned |") {
		t.Errorf("a terminal shows a log for programs:\n%s", sent)
	}
	sent, _ = onTerminal(t, 80, 24, true, "run", "a", "--memory", "512MiB", "--log-level", "info")
	if !strings.Contains(sent, "level=INFO") || !strings.Contains(sent, "planned | measured") {
		t.Errorf("--log-level info shows less than it was asked for:\n%s", sent)
	}
}

// colour matches what a terminal takes for a change of colour.
var colour = regexp.MustCompile("\x1b\\[[0-9]+m")

// TestColours: on a terminal, ticks are green and the first words of warnings and errors have colours. With NO_COLOR nothing has.
func TestColours(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"run", "--dataset", "karate:", "--run", "a", "--memory", "512MiB"}
	sent, _ := onTerminal(t, 80, 24, true, args...)
	for _, want := range []string{"\x1b[32m✓\x1b[0m lsi ", "\x1b[33mwarning:\x1b[0m left out"} {
		if !strings.Contains(sent, want) {
			t.Errorf("no %q in\n%q", want, sent)
		}
	}
	if sent, _ := onTerminal(t, 80, 24, true, "inspect", "nothing"); !strings.HasPrefix(sent, "\x1b[31mndls:\x1b[0m ") {
		t.Errorf("%q", sent)
	}
	var out bytes.Buffer
	t.Setenv("NO_COLOR", "1")
	f := newFolding(&out, func() int { return 80 })
	if _, err := io.WriteString(f, "✓ lsi\n"); err != nil || out.String() != "✓ lsi\n" {
		t.Errorf("with NO_COLOR: %q, %v", &out, err)
	}
}

// TestFold breaks lines where a reader, or a shell, may go on.
func TestFold(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"short", "short"},
		{"one two three four five", "one two three\n  four five"},
		{"  ndls run --dataset karate: --run a", "  ndls run \\\n    --dataset \\\n    karate: \\\n    --run a"},
		{"  ndls run --seed 7", "  ndls run \\\n    --seed 7"},
		{"averylongwordthatstays whole", "averylongwordthatstays\n  whole"},
		{"ä ö ü ä ö ü ä ö", "ä ö ü ä ö ü ä ö"},
	} {
		if got := strings.Join(fold(tc.line, 16), "\n"); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.line, got, tc.want)
		}
	}
	if got := cut("edges:/data/a/long/path/edges.csv?features=x.npy", 20); got != "edges:/da…ures=x.npy" {
		t.Error(got)
	}
}
