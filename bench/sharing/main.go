// Command sharing measures what each way of sharing rows gains: workers in network namespaces of their own, whose cables
// carry a given number of bits a second, run lsi and smooth with the way and without it, in turn.
//
//	sudo go run -C bench ./sharing [-ways lists,relay] [-workers 2,4,8,16] [-bits 200e6,1e9,10e9] [-rounds 3]
//
// A way is left out by a change of a source file, which the go command reads through -overlay: the program has no option for
// it. The table has the median seconds of both stages, and what share of the time without the way it saves. The graph of a way
// has 16 strips of rows, and features that make one panel, so that hops travel. All workers share the processors of one
// machine, and each has one thread. It needs root, ip and tc.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// change replaces a text that occurs exactly once in a file of the repository.
type change struct{ file, from, to string }

// way describes a measurement: the same job by the program with the way, and without it.
type way struct {
	name string
	// edges is the number of edges of the graph for each node, features its number of features.
	edges, features int
	least           int      // workers from which on there is a difference
	share           []string // options of the coordinator
	with, without   []change
	plain           []string // options of the coordinator without the way, if they differ
}

// settings are the flags.
type settings struct {
	dir            string
	ways           []string
	workers        []int
	bits           []float64
	rounds, probes int
	memory         string
}

func main() {
	log.SetFlags(0)
	var s settings
	var names, workers, bits string
	flag.StringVar(&s.dir, "dir", "", "folder for programs, graphs and run directories; programs and graphs in it are used again (default a temporary one)")
	flag.StringVar(&names, "ways", "", "ways to measure, separated by commas (default all)")
	flag.StringVar(&workers, "workers", "2,4,8,16", "numbers of workers")
	flag.StringVar(&bits, "bits", "200e6,1e9,10e9", "bits a second of each cable in each direction")
	flag.IntVar(&s.rounds, "rounds", 3, "runs of each kind")
	flag.IntVar(&s.probes, "probes", 32, "columns of the probe of lsi")
	flag.StringVar(&s.memory, "memory", "800MiB", "--memory of each worker")
	flag.Parse()
	for _, w := range ways {
		if names == "" || slices.Contains(strings.Split(names, ","), w.name) {
			s.ways = append(s.ways, w.name)
		}
	}
	for _, text := range strings.Split(workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			log.Fatal("sharing: -workers: ", err)
		}
		s.workers = append(s.workers, n)
	}
	for _, text := range strings.Split(bits, ",") {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			log.Fatal("sharing: -bits: ", err)
		}
		s.bits = append(s.bits, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.measure(ctx); err != nil {
		log.Fatal("sharing: ", err)
	}
}

func (s *settings) measure(ctx context.Context) error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "ndls-sharing-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.dir = dir
	}
	if s.rounds > 0 {
		fmt.Println("| way | workers | Mb/s | lsi without, s | with, s | saved | smooth without, s | with, s | saved |\n|---|---|---|---|---|---|---|---|---|")
	}
	for _, w := range ways {
		if !slices.Contains(s.ways, w.name) {
			continue
		}
		with, err := s.program(ctx, w.name+"-with", w.with)
		if err != nil {
			return err
		}
		without, err := s.program(ctx, w.name+"-without", w.without)
		if err != nil {
			return err
		}
		plain := w.plain
		if plain == nil {
			plain = w.share
		}
		base, err := s.partitioned(ctx, with, w)
		if err != nil {
			return err
		}
		for _, workers := range s.workers {
			if workers < w.least {
				continue
			}
			for _, bits := range s.bits {
				if s.rounds == 0 {
					continue
				}
				if err := s.compare(ctx, w, base, workers, bits, kind{without, plain}, kind{with, w.share}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// kind is a program and how its workers share.
type kind struct {
	program string
	share   []string
}

// compare prints the row of the table for a number of workers and a speed.
func (s *settings) compare(ctx context.Context, w way, base string, workers int, bits float64, kinds ...kind) error {
	l, err := newLAN(ctx, workers+1, bits)
	if err != nil {
		return err
	}
	defer l.close()
	took := make([]map[string][]float64, len(kinds))
	for round := range s.rounds {
		for i := range kinds {
			i := (i + round) % len(kinds) // neither is always first
			if took[i] == nil {
				took[i] = map[string][]float64{}
			}
			seconds, err := s.run(ctx, l, w, base, workers, kinds[i])
			if err != nil {
				return fmt.Errorf("%s, %d workers: %w", w.name, workers, err)
			}
			for name, x := range seconds {
				took[i][name] = append(took[i][name], x)
			}
		}
	}
	fmt.Printf("| %s | %d | %.0f |", w.name, workers, bits/1e6)
	for _, name := range []string{"lsi", "smooth"} {
		without, with := median(took[0][name]), median(took[1][name])
		fmt.Printf(" %s | %s | %.0f %% |", spread(took[0][name]), spread(took[1][name]), 100*(1-with/without))
	}
	fmt.Println()
	return nil
}

func median(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }

// spread is the median with the least and the largest value.
func spread(of []float64) string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(of), slices.Min(of), slices.Max(of))
}

// program builds ndls with some changes, and returns its path.
func (s *settings) program(ctx context.Context, name string, changes []change) (string, error) {
	program := filepath.Join(s.dir, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("the root of the repository: %w", err)
	}
	root := strings.TrimSpace(string(out))
	texts := map[string]string{}
	for _, c := range changes {
		file := filepath.Join(root, c.file)
		if texts[file] == "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			texts[file] = string(text)
		}
		if n := strings.Count(texts[file], c.from); n != 1 {
			return "", fmt.Errorf("%s has %q %d times", c.file, c.from, n)
		}
		texts[file] = strings.Replace(texts[file], c.from, c.to, 1)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range texts {
		copied := filepath.Join(s.dir, fmt.Sprintf("%s-%d.go", name, len(overlay.Replace)))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[file] = copied
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	listed := filepath.Join(s.dir, name+".json")
	if err := os.WriteFile(listed, list, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags=grpcnotrace,tinygo", "-overlay", listed, "-o", program, "./cmd/ndls")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of %s: %w\n%s", name, err, out)
	}
	return program, nil
}
