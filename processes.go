package ndls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"ndls/coordinator"
	"ndls/internal/control/rpc"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/supervise"
	"ndls/placement"
)

// processes runs the stages with worker processes on this host, which share the
// resources.
func (j job) processes(ctx context.Context, onlooker onlooker) (*Directory, error) {
	memory, err := j.Resources.memory()
	if err != nil {
		return nil, err
	}
	if _, err := placement.ParseParallel(j.Parallel, j.GroupSize); err != nil {
		return nil, err
	}
	// The coordinator computes nothing; it has what every process of Go takes.
	share := (memory - mem.RuntimeShare) / int64(j.Workers.Processes)
	if share < mem.MinBudget {
		least := mem.RuntimeShare + int64(j.Workers.Processes)*mem.MinBudget
		return nil, failure.Of(ErrBudget, "--workers %d leaves each worker %s of the %s of --memory; a worker needs at least %s: use fewer workers; --memory %dMiB is enough",
			j.Workers.Processes, mem.Bytes(max(share, 0)), mem.Bytes(memory), mem.Bytes(mem.MinBudget), (least+1<<20-1)>>20)
	}
	token := rpc.MakeToken()
	security, err := rpc.TokenSecurity(token, "memory")
	if err != nil {
		return nil, err
	}
	name := j.Workers.Program
	if name == "" {
		name = "ndls"
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("--workers: %w", err)
	}
	r, err := j.begin(ctx, coordinator.Options{Workers: j.Workers.Processes, Near: true, Log: j.Log})
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.onlooker = onlooker
	each := j.Resources
	each.Memory, each.Threads = share, max(threads(each.Threads)/j.Workers.Processes, 1)
	r.work.Resources.Memory, r.work.Resources.Threads, r.work.Resources.BlockColumns = share, each.Threads, each.BlockColumns
	var group errgroup.Group
	output := &shared{to: j.Workers.Output}
	rec, err := r.serve(ctx, ServeConfig{Listen: loopback, Gossip: loopback}, security, func(serving context.Context, address string) error {
		// Children are told to stop with this process, and are gone when the run is over.
		for range j.Workers.Processes {
			group.Go(func() error {
				var words *lastWords
				err := supervise.Keep(ctx, serving, helps, func(ctx context.Context) *exec.Cmd {
					if text := words.text(); text != "" {
						j.Log.Warn("a worker process failed and is started again", "because", text)
					}
					words = &lastWords{to: output}
					cmd := exec.CommandContext(ctx, program, append(each.workerArgs(j), "--coordinator", address)...)
					cmd.Env = append(withoutOptions(os.Environ()), rpc.TokenVariable+"="+token)
					cmd.Stderr = words
					return cmd
				})
				if text := words.text(); err != nil && text != "" {
					return failure.As(err, errors.New(text))
				}
				return err
			})
		}
		return group.Wait()
	})
	if err != nil {
		r.dropRefused(err)
		return nil, ended(err)
	}
	return r.directory(rec), nil
}

// workerArgs is the command line of a worker process of j with the resources r.
func (r Resources) workerArgs(j job) []string {
	args := []string{
		"worker", "--run", j.Run, "--memory", strconv.FormatInt(r.Memory, 10), "--threads", strconv.Itoa(r.Threads),
		"--block-columns", strconv.Itoa(r.BlockColumns), "--quiet",
	}
	for flag, value := range map[string]string{"--kernel": r.Kernel, "--scratch": r.Scratch, "--log-level": j.Workers.LogLevel} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	return args
}

// shared is a writer for several processes; none of it drops what they write.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		return len(p), nil
	}
	return s.to.Write(p)
}

// lastWords passes on what a process writes, line by line, but for the error with which it
// ends: that becomes the error of the run, or of the log.
type lastWords struct {
	to    io.Writer
	line  []byte
	words []byte
}

// errorPrefix begins the error with which a process of ndls ends.
const errorPrefix = "ndls: "

func (w *lastWords) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, line...)
		if rest = after; !ended {
			break
		}
		w.line = append(w.line, '\n')
		var err error
		if len(w.words) > 0 || bytes.HasPrefix(w.line, []byte(errorPrefix)) {
			w.words = append(w.words, w.line...)
		} else {
			_, err = w.to.Write(w.line)
		}
		if w.line = w.line[:0]; err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// text is the error with which the process has ended, "" if it said none.
func (w *lastWords) text() string {
	if w == nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(append(w.words, w.line...))), errorPrefix)
}

// helps reports whether a process that ended with a status can do better the next time.
func helps(status int) bool { return status <= ExitError || status == ExitTerminated }

// ended gives the error of a worker process the kind that its exit status tells.
func ended(err error) error {
	var process *supervise.Ended
	if errors.As(err, &process) {
		if kind := kindOf(process.Status); kind != nil {
			return failure.As(kind, err)
		}
	}
	return err
}
