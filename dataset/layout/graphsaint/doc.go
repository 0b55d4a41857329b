// Package graphsaint reads the four files in which GraphSAINT (Zeng et al., ICLR 2020)
// publishes a graph: adj_full.npz, feats.npy, class_map.json and role.json.
//
// # Memory
//
// The JSON files are read token by token, and again for each stream of labels or splits.
//
// # Not supported
//
// Nodes of several classes (PPI, Yelp, Amazon).
package graphsaint
