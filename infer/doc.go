// Package infer computes K, smoothed rows and predictions of nodes that a run does not have,
// from the hops that the run has kept of its own nodes.
//
// # Model
//
// The nodes of the run are the old ones. Their rows X^(0), …, X^(H), which the run has kept,
// and their degrees are held fixed: an edge to a new node changes nothing for the old one. A
// new node v has d̃_v = 1 + Σ_u w_vu from its own edges, whose weights are 1 in a graph without
// weights, and
//
//	Z_v^(0) = d̃_v^(−r) x_v
//	Z_v^(k) = (Z_v^(k−1) + Σ_u w_vu Z_u^(k−1)) / d̃_v,    X_v^(k) = d̃_v^r Z_v^(k)
//
// over its neighbours u, old ones with the rows Z_u^(k) = d̃_u^(−r) X_u^(k) that were kept, new
// ones with those that are computed.
//
// If neighbours fill missing features, x_v of a new node has the mean, by the weights of its edges, of the neighbours that have a number:
// old ones whose kept row has no mask, and new ones before they are filled. Where none has, it is the mean of the run's column.
//
// New nodes that can be reached from each other by new nodes are a patch. The stationary row
// of its nodes is the mean, over the edges that lead from the patch to old nodes, by their
// weights, of the stationary rows z̄ of the components there, which the run has computed. If all
// of them lead to one component, or the patch is one node, it is the limit of Z_v^(k) for an
// endless run of these hops. A patch without such edges has the stationary row of a graph of its
// own, or, with --stationary global, that of the run.
//
// K of a new node is the first hop at which d̃_v^r ‖Z_v^(k) − z̄‖₂ is below a threshold, and H
// where there is none: the LSI in feature space. A run that has found K from its features as
// they are stored gives the threshold. Otherwise it is the one with which about 2,000 old
// nodes, which the seed chooses, have the mean K of the run when K is found in this way.
//
// The rule of the run makes the smoothed row of the node's hops, or lists all hops for sign,
// and the prediction comes from the model whose predictions the run has written, or, where these are the mean of all models, the
// mean. Label smoothing is for the nodes of the run only.
//
// # Algorithm
//
// Ids of the new nodes are sorted, and those of the old ones are found in one pass over the
// node table. Rows that repeat an edge must have one weight, or are added up with repeated=sum,
// as in an import. Patches are computed in batches: of each old neighbour one row with all hops
// is read, in order of node, then hops follow each other. Features of the new nodes, and their
// smoothed rows, lie in temporary files in order of id.
//
// # Memory
//
// 8·n bytes for n old nodes, 46 for each new node, 70 for each edge of the dataset, 4 for each
// component, and 8·f for each component with an edge to a new node or in the sample, for f
// features. A batch takes 4·f·(H+2) bytes for each of its nodes and 16 for each of its edges, and 24 for each column of numbers of a node
// if neighbours fill them, at most half of what is free but for a patch that takes more. Temporary files take 8·f bytes for
// each new node.
//
// # Determinism
//
// Rows are sums in a fixed order: old neighbours in order of node, then the node itself, then
// new neighbours in order of id. Batches and threads change no bit.
//
// # Not supported
//
// Patches that do not fit into memory. Checksums of the hops: single rows are read, and only
// `ndls verify` reads all. New nodes of a run whose edges have weights need weights, and others
// must have none. Runs with rows of edges alone (fastrp) and of hops that are weighed together
// (nafs), whose hops are not kept. Runs whose lists of hops repeat the last hop of a node (sign
// with K hops of each). Runs with
// label columns: the hops that they keep of training nodes leave the labels of these nodes out,
// and a new node beside them would need those labels.
package infer
