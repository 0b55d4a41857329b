// Command order measures how the order of the nodes changes the speed of a pass,
// and prints a Markdown table, one line for each order:
//
//	go run -C bench ./order -dataset papers100m:scale=1/64,tails=0 -memory 5 [-orders degree,bfs] [-columns 16] [-rounds 5]
//
// The data set is any that ndls run takes; only its edges are read. The passes are the product's, with the edges in memory: every order is packed into its
// own hop stream. In each round the orders take turns, so that what else the
// machine does meets all of them; every pass that is timed follows one that is
// not. Rates are medians; the ratios to the product's order, "degree", are taken
// round by round, of seconds and of CPU seconds, and stand with their range.
//
// # Model
//
// Some orders see the ids of the input: "input" itself, "degree" among equal
// degrees, "hubs-input" (nodes above the mean degree first and by degree, the rest
// as in the input) and "grouped-input" (by the power of two below the degree, else
// as in the input: Faldu, Diamond and Grot, "A Closer Look at Lightweight Graph
// Reordering", IISWC 2019). The others are found in a graph whose nodes are
// shuffled first and then numbered by descending degree, so that nothing of the
// input's order is left. "shuffled-degree" is that, "random" not even that; "bfs"
// is the search of Cuthill and McKee, but from the node of largest degree and with
// neighbours of large degree first; "clusters" is five rounds of label propagation
// with clusters that fit a strip, clusters by size and nodes by degree in them.
// "hubs-bfs", "hubs-clusters", "grouped-clusters" and "grouped-random" combine
// these; the last shows the gain of "grouped-input" if the input has no order.
//
// Rows an edge are the pairs (strip, source) that a pass meets, in shares of the
// edges: what it reads of a hop that no cache holds. They do not depend on the
// machine.
//
// # Memory
//
// For n nodes, m directed edges, o orders and c columns, off the heap and in
// bytes: 8m while edges are read, 4m + 16n for the graph, 4.3m to pack an order,
// 4.1m + 8n for each order, and 8nc for the rows.
//
// # Determinism
//
// Orders and streams depend on the edges alone.
//
// # Not supported
//
// Graphs whose edges do not fit in memory: the CPU seconds to find an order, on one
// thread, are not those of finding it out of core.
package main
