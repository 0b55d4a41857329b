package ndls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sync/errgroup"

	"ndls/coordinator"
	"ndls/internal/control/rpc"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/supervise"
)

// loopback is where only this host can connect, at a free port.
const loopback = "127.0.0.1:0"

// processes runs the stages with worker processes on this host, which share the
// resources.
func (j job) processes(ctx context.Context) (*Directory, error) {
	memory, err := j.Resources.memory()
	if err != nil {
		return nil, err
	}
	if err := j.checkParallel(); err != nil {
		return nil, err
	}
	// The coordinator computes nothing; it has what every process of Go takes.
	share := (memory - mem.RuntimeShare) / int64(j.Workers.Processes)
	if share < mem.MinBudget {
		return nil, failure.Of(ErrBudget, "--workers %d: %s of --memory leave %s for each; %s are the least",
			j.Workers.Processes, mem.Bytes(memory), mem.Bytes(max(share, 0)), mem.Bytes(mem.MinBudget))
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
	r, err := j.begin(ctx, coordinator.Options{Workers: j.Workers.Processes, Log: j.Log})
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.share(j.Workers.Processes); err != nil {
		return nil, err
	}
	each := j.Resources
	each.Memory, each.Threads = share, max(threads(each.Threads)/j.Workers.Processes, 1)
	r.work.Resources.Memory, r.work.Resources.Threads, r.work.Resources.BlockColumns = share, each.Threads, each.BlockColumns
	var group errgroup.Group
	rec, err := r.serve(ctx, ServeConfig{Listen: loopback, Gossip: loopback}, security, func(serving context.Context, address string) error {
		// Children are told to stop with this process, and are gone when the run is over.
		for range j.Workers.Processes {
			group.Go(func() error {
				return supervise.Keep(ctx, serving, helps, func(ctx context.Context) *exec.Cmd {
					cmd := exec.CommandContext(ctx, program, append(each.workerArgs(j), "--coordinator", address)...)
					cmd.Env = append(os.Environ(), rpc.TokenVariable+"="+token)
					cmd.Stderr = j.Workers.Output
					return cmd
				})
			})
		}
		return group.Wait()
	})
	if err != nil {
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

// helps says whether a process that ended with a status can do better the next time.
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
