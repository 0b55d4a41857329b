package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/internal/meant"
	"ndls/internal/mem"
)

// limits are the flags that say what a command may take of the machine.
type limits struct {
	memory  string
	threads int
	scratch string
	kernel  string

	cache, cacheSize string
	disk             string
	blockColumns     int
	// memoryBytes and cacheBytes are --memory and --cache-size, 0 for the default.
	memoryBytes, cacheBytes int64
	// diskBytes is --disk, 0 for as much as is free.
	diskBytes int64
}

// flags adds the flags that all verbs have.
func (l *limits) flags(f *pflag.FlagSet) {
	f.StringVar(&l.memory, "memory", "", "hard limit for heap, arrays and page cache, such as 8GiB (default 3/4 of the available memory, at most 8GiB)")
	f.IntVar(&l.threads, "threads", processors, "threads that compute")
	f.StringVar(&l.scratch, "scratch", "", "local folder for temporary files (default RUN/scratch)")
	f.StringVar(&l.kernel, "kernel", "auto", "kernel of the passes: auto, avx512, avx2 or go; never changes results")
	inGroup(f, groupExpert, "kernel")
}

func (l *limits) columnsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&l.blockColumns, "block-columns", 0, "feature or label columns that are smoothed at a time, a multiple of 16 (default as many as --memory holds)")
	inGroup(cmd.Flags(), groupExpert, "block-columns")
}

func (l *limits) diskFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.disk, "disk", "", "limit for the run directory and temporary files together, such as 75GB: stages that would exceed it leave out temporary files that only save time, and are refused if that is not enough (default the free space)")
}

// cacheFlags adds --cache and --cache-size.
func (l *limits) cacheFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.cache, "cache", "", "local folder, used by this process alone, for copies of data read from s3:// (default in --scratch)")
	cmd.Flags().StringVar(&l.cacheSize, "cache-size", "", "largest size of the cache, such as 200GiB (default half of the free space on its disk)")
	inGroup(cmd.Flags(), groupExpert, "cache", "cache-size")
}

// check reads the values of the flags that many verbs have.
func (l *limits) check(cmd *cobra.Command) (err error) {
	if l.threads < 1 {
		return fmt.Errorf("--threads %d is less than 1", l.threads)
	}
	if !slices.Contains(kernelNames, l.kernel) {
		return fmt.Errorf("--kernel %q is none of %s%s", l.kernel, strings.Join(kernelNames, ", "), meant.Hint(l.kernel, kernelNames))
	}
	if l.blockColumns < 0 {
		return fmt.Errorf("--block-columns %d is negative", l.blockColumns)
	}
	for _, size := range []struct {
		flag, text string
		to         *int64
	}{{"memory", l.memory, &l.memoryBytes}, {"cache-size", l.cacheSize, &l.cacheBytes}, {"disk", l.disk, &l.diskBytes}} {
		if flag := cmd.Flags().Lookup(size.flag); flag == nil || !flag.Changed {
			continue
		}
		if *size.to, err = mem.ParseBytes(size.text); err != nil {
			return fmt.Errorf("--%s %w", size.flag, err)
		}
	}
	return nil
}

// checkMemory refuses a --memory in which no command can stay. plan says of any how much it lacks.
func (l *limits) checkMemory(cmd *cobra.Command) error {
	if l.memoryBytes == 0 || cmd.Name() == "plan" {
		return nil
	}
	return mem.CheckTotal(l.memoryBytes)
}

// resources are those that the flags give.
func (l *limits) resources() ndls.Resources {
	return ndls.Resources{
		Memory: l.memoryBytes, Threads: l.threads, Scratch: l.scratch, Kernel: l.kernel, BlockColumns: l.blockColumns,
		Disk: l.diskBytes, Cache: l.cache, CacheSize: l.cacheBytes,
	}
}
