// Package stage holds what all stages of a run share: the interface of a stage, the shapes of its work, and what a task of it works with.
// The stages are in the packages below.
//
// # Model
//
// A [Stage] says what it needs and writes, which options decide its bytes, into which tasks it can be divided, what it costs, and how a
// task of it runs. It has one of three shapes ([Shape]): [Whole], [Steps] or [Matrix]. Package registry lists the stages: a coordinator
// plans with it and a worker executes with it. Each package imports those above it in this table alone:
//
//	stage      the interface, shapes, and [Env]: the catalogue, the node table, parts of tasks
//	graph      the stored graph, and how columns are smoothed over it
//	imports    partition, degrees; rows that users give, by input id
//	depth      lsi, spectrum: K of each node
//	features   smooth: rows of smoothed features, kept hops
//	measures   labels and splits of rows, tallies, scores, breakdowns
//	models     train, predict
//	labels     label-depth, smooth-labels: soft labels, corrections, predictions
//	evaluate   evaluate: accuracies
//	registry   all stages, hashes of their options, kinds of their files
//	trial      rows in memory, and what a trial of a search executes
//
// The stages commit these files:
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
// continues. [Session] keeps open what tasks of the same part share.
//
// # Memory
//
// Session.Budget accounts for all memory that grows with the graph. What a stage takes is in the documentation of its package. The input
// ids of all nodes take 4·n, finding nodes by id 8·n.
//
// # Threads
//
// Passes, sorts, training and prediction use Resources.Threads threads. So do assembling rows from tiles, looking up the nodes of a split,
// and comparing K with its bound. One thread reads the node table and the K table.
//
// # Determinism
//
// Committed bytes depend on the plan and the input alone: not on how stages are cut into tasks, on who executes them, or where they were
// interrupted. Each file is bound to the hash of the part of the plan that decides its bytes. A file that was made under another plan never
// counts as complete.
package stage
