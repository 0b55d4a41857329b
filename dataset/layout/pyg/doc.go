// Package pyg reads a graph of PyTorch Geometric from a file that torch.save has written: a
// Data object, a dict of its tensors, or the tuple (data, slices) in which InMemoryDataset
// stores its processed form.
//
// # Not supported
//
// HeteroData, several graphs in one file, and adjacency as a SparseTensor.
package pyg
