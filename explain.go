package ndls

import (
	"context"

	"ndls/explain"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/stage/depth"
	"ndls/stage/registry"
)

// ExplainOptions say which node to explain, and how far.
type ExplainOptions struct {
	// Node is the input id of the node, as text.
	Node string
	// Hops is the hop up to which distances are computed, at most Kmax of the run; 0 goes as far as
	// the run's K and until the distance is below its ε.
	Hops int
	// Neighbours is the number of neighbours that are listed one by one, those with the largest
	// degrees.
	Neighbours int
	Resources
}

// Types of an explanation.
type (
	// NodeClass is a class by number and name.
	NodeClass = explain.Class
	// NodePrediction holds the prediction of a node.
	NodePrediction = explain.Prediction
	// NodeNeighbour is a neighbour of a node.
	NodeNeighbour = explain.Neighbour
)

// An Explanation says why a node of a run was smoothed as it was.
type Explanation struct {
	Run string `json:"run"`
	explain.Node
	// Epsilon, Kmax and Stationary are those with which the run has found K. Mode is how it has measured distances, also
	// where --lsi left that to the size of the graph.
	Epsilon    float64 `json:"epsilon"`
	Kmax       int     `json:"kmax"`
	Mode       string  `json:"lsi"`
	Stationary string  `json:"stationary"`
	// ClassNames are the names of the classes, in the order of probabilities.
	ClassNames []string `json:"classes,omitempty"`
	// LabelSmoothing is nil where the run has smoothed no labels.
	LabelSmoothing *NodeLabelSmoothing `json:"label_smoothing,omitempty"`
}

// NodeLabelSmoothing is how labels were smoothed for a node.
type NodeLabelSmoothing struct {
	Rule string `json:"rule"`
	// Depth is the largest number of hops for any node, Chosen whether validation nodes have chosen it.
	Depth  int  `json:"depth"`
	Chosen bool `json:"chosen"`
	// Hops is the number of hops over which the soft labels of the node were smoothed. It is nil if
	// that follows from a K table which the run has not kept, because its ε differs.
	Hops *int `json:"hops"`
}

// Explain returns what decided a node's rows and its prediction. K, degrees and predictions come
// from the run; distances are computed anew, exactly. The error wraps [ErrOption] for an id that
// belongs to no node.
func (d *Directory) Explain(ctx context.Context, o ExplainOptions) (_ *Explanation, err error) {
	defer func() { err = interruption(ctx, registry.Explain(err, d.cat)) }()
	switch {
	case o.Hops < 0:
		return nil, failure.Of(ErrOption, "--hops %d is negative", o.Hops)
	case o.Neighbours < 0:
		return nil, failure.Of(ErrOption, "--neighbours %d is negative", o.Neighbours)
	}
	graph, err := d.Graph(ctx)
	if err != nil {
		return nil, err
	}
	plan := d.record.Plan
	mode := depth.LSIOptions(plan, graph).Mode
	if o.Hops > plan.LSI.Kmax {
		return nil, failure.Of(ErrOption, "--hops %d: the run has looked at %d hops at most (--kmax)", o.Hops, plan.LSI.Kmax)
	}
	budget, err := o.Budget()
	if err != nil {
		return nil, err
	}
	defer budget.Close()
	node, err := explain.Of(ctx, d.cat, explain.Options{
		ID: o.Node, R: plan.LSI.R, Epsilon: plan.LSI.Epsilon, Kmax: plan.LSI.Kmax, Mode: mode, Global: plan.LSI.Stationary == "global",
		Hops: o.Hops, Neighbours: o.Neighbours, Budget: budget, Threads: threads(o.Threads),
	})
	if err != nil {
		return nil, err
	}
	return &Explanation{
		Run: d.uri, Node: *node, Epsilon: plan.LSI.Epsilon, Kmax: plan.LSI.Kmax, Mode: mode, Stationary: plan.LSI.Stationary,
		ClassNames: graph.Classes, LabelSmoothing: d.labelSmoothing(node),
	}, nil
}

// labelSmoothing says how labels were smoothed for a node.
func (d *Directory) labelSmoothing(node *explain.Node) *NodeLabelSmoothing {
	if !d.record.Done(control.SmoothLabels) {
		return nil
	}
	labels := d.record.Plan.Labels
	l := &NodeLabelSmoothing{Rule: labels.Rule, Depth: labels.Hops()}
	if x := d.record.Stage(control.LabelDepth); x != nil && x.LabelDepth != nil {
		l.Depth, l.Chosen = x.LabelDepth.Chosen, true
	}
	if x := d.record.Stage(control.Evaluate); l.Chosen && x != nil && x.Accuracy != nil && x.Accuracy.Predictions != nil &&
		x.Accuracy.Predictions.Depth != nil {
		l.Depth = *x.Accuracy.Predictions.Depth
	}
	sameEpsilon := labels.Epsilon == 0 || labels.Epsilon == d.record.Plan.LSI.Epsilon
	switch {
	case l.Depth == 0 || !labels.TakesK() && labels.Corrects():
		hops := l.Depth
		l.Hops = &hops
	case labels.TakesK() && sameEpsilon && node.K != nil:
		hops := min(node.K.K, l.Depth)
		l.Hops = &hops
	}
	return l
}
