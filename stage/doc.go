// Package stage holds the stages of a run behind one interface, each in a file of its own, and the code that several of them share.
//
// # Model
//
// A [Stage] says what it needs and writes, which options decide its bytes, into which tasks it can be divided, what it costs, and how a
// task of it runs. It has one of three shapes ([Shape]): [Whole], [Steps] or [Matrix]. [All] is the registry. A coordinator plans with it
// and a worker executes with it ([Execute]). The stages commit these files:
//
//	partition      graph/…                     package partition
//	degrees        histograms, in the report
//	lsi            lsi/part-NNNNN.parquet      package lsi
//	smooth         smoothed/part-NNNNN.arrow   package smooth, by way of tiles
//	               hops/part-NNNNN.arrow       hops that are kept
//	train          model/…                     package train
//	predict        soft_labels/…               package train
//	spectrum       λ₂ and the bound on K, in the report
//	label-depth    predictions/depth.json
//	smooth-labels  predictions/part-NNNNN.arrow, by way of tiles
//	evaluate       accuracies, in the report
//
// A task looks up in the catalogue what is committed and does the rest: after an error, a kill or a cancelled context the same task
// continues. [Env] holds what a task works with. [Session] keeps open what tasks of the same part share.
//
// # Memory
//
// With n nodes, b columns of a block, C components and s bytes of packed edges:
//
//	graph          8·n, 4·n more with weights and 8·n more with directions, and s if that is
//	               at most a quarter of what is free
//	degrees        8·C
//	lsi            2·n·b·4 + 6·n (+ 8·n with several blocks) + 8·C·b
//	smooth         3·n·b·4 + 2·n, and n·b·4 for columns of the next block where there are
//	               several and the memory has room; all but 2·n for each of several teams,
//	               where strips are fewer than threads; then one record batch, or two where rows
//	               have several lists or label columns. nafs takes 8·n (4·n more with weights, 2·n with K
//	               hops of each node) and 8·C·f for f features beside the batch
//	train          the sampled rows, or a window of record batches
//	predict        two record batches, the models, 32 KiB for each class, 5·n of labels
//	label-depth    as smooth, with sums for v validation nodes alone and 8·v for each depth
//	               and panel of the block; beside that, as predict with one model
//	               With --label-rule cs the correction comes first: as smooth, with 64 bytes
//	               more for each training node and panel of the block where the scale is a
//	               number; beside that, as predict with one model, 4 bytes for each node of an
//	               interval, and 4 for each training node
//	spectrum       a block of 16 columns, and 132·n
//	smooth-labels  as smooth; beside that, as predict with one model, then 9·n of ids and
//	               labels. Given soft labels take 17·n to find nodes by id, and a block of
//	               their tiles. Where the best class alone is stored, merging tiles takes
//	               1.5 MiB beside a block: 32 bytes for each of 2^13 rows, and for two pieces
//	               of these rows 9 bytes for each of 8 panels
//
// b is the widest multiple of 16 that fits, or Resources.BlockColumns. Session.Budget accounts for all of this memory.
//
// # Threads
//
// Passes, sorts, training and prediction use Resources.Threads threads. So do assembling rows from tiles, looking up the nodes of a split,
// and comparing K with its bound. One thread reads the node table and the K table.
//
// # Determinism
//
// Committed bytes depend on the plan and the input alone: not on how stages are cut into tasks, on who executes them, or where they were
// interrupted. Each file is bound to the hash of the part of the plan that decides its bytes ([Binding]). A file that was made under
// another plan never counts as complete.
package stage
