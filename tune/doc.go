// Package tune chooses settings of a run by the accuracy on validation nodes.
//
// # Model
//
// A [Space] says which options differ between trials, and which values they may have. [Search]
// draws the trials, makes them, and chooses the one with the highest mean accuracy on the
// validation nodes over all models: of equals the one that was drawn first. A trial does what ndls
// run does with its options up to that accuracy, bit for bit. Labels of test nodes take no part:
// whoever wants the test accuracy of the chosen settings runs them ([Result.Command],
// [Result.Apply]).
//
// # Algorithm
//
// Learning rates of the default space are divided by the root mean square of the lengths of the
// features of training nodes, where that is above 1. A random search begins with trials that are
// known: for each rule the defaults of ndls run with the number of hops, ε or α of the rule's
// paper, and then what its authors train with, network included. The trials after them are random.
// A value of a random trial is a hash of the seed, of the number of the attempt and of the option's
// name. An attempt whose settings were drawn before is drawn again. Options that decide nothing
// beside the others (the hops of rule ndls, say) are no part of a trial's settings.
//
// The dataset is imported once. Trials that differ in ε, in the rule and its options, and in training share the hops of the
// features: K is found for all their ε in the same passes, and their rows are added up side by side and stay in memory, of as many
// kinds as fit. A trial then costs its training, reads no file, and is made side by side with as many others as the threads serve.
// Where rows do not fit the memory, or smoothing takes so long that it has to continue after an interruption, rows are
// smoothed into files, one kind after the other, for the trials that agree in it ([ndls.Trials.Prepare]). Trials that differ in
// options of label smoothing alone share their models.
//
// With [Config.Halving] all trials have one model a split, whose training ends after an eighth of the patience. Then the best quarter
// of them has half of the models, with all of the patience, and the best eighth all. Who is better depends on the figures of as many
// models of the same patience alone, so that neither interruptions nor the order in which trials end change it. A training with less
// patience is the beginning of one with more. Models of the step before are trained again.
//
// # Format
//
// The folder of a search holds
//
//	search.json         what is searched
//	trials/NNNNNN.json  a trial, committed when it is made
//	trials.csv          all trials as a table, at the end
//	tune.json           the result, at the end
//	work/               a run directory: the graph, the last K tables and, where they are in files, the last smoothed rows
//
// A search that was interrupted goes on: trials in the folder are not made again. The files of a
// trial under way are in work/scratch, and are removed after it.
//
// # Memory
//
// That of the stages up to smoothing, one after the other; then the rows that are held and, for each
// trial at a time, what its stages take of an equal share of the rest. The settings and figures of all
// trials, about a kilobyte and 100 bytes for each model, are on the heap.
//
// # Determinism
//
// Trials, their figures and the choice depend on the dataset, the options, the space and the seed
// alone: trials.csv has the same bytes whatever the threads, the memory and the interruptions. Seconds in tune.json
// and in trials differ.
//
// # Not supported
//
// Searches that look at earlier trials to draw later ones, and several processes at a time.
package tune
