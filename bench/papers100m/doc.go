// Command papers100m measures ndls on graphs of the shape of ogbn-papers100M and
// prints a Markdown table, one line for each stage:
//
//	go run -C bench ./papers100m -scales 1/1024,1/256,1/64 -memory 2 -dir DIR [-- OPTIONS]
//
// Graphs are papers100m:scale=SCALE,tails=0, as RESULTS.md has them; -keys has other keys.
// DIR needs room for one run; OPTIONS are options of ndls run. With -dataset ogb:DIR
// the published data set is measured instead. Every run takes place in a memory
// control group of its budget; edges/s are edges of a pass, each as wide as the
// column before says.
//
// With -run DIR the run directory stays, and a later run goes on with it. -verb is the verb of
// the program, run otherwise, and OPTIONS are its options. So one stage is measured
// again with other options:
//
//	go run -C bench ./papers100m -scales 1 -memory 16 -run DIR -verb lsi -- --resume=false --epsilon 0.1
package main
