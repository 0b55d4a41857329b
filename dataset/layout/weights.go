package layout

import (
	"strings"

	"ndls/dataset/graph"
)

// Weights are the options weight=NAME and repeated=sum of a URI.
type Weights struct {
	// Name says where the weights of edges are, "" for none.
	Name string
	// Sum says that the weights of edges that are there again are added up.
	Sum bool
}

// Options are the options split=N, weight=NAME and repeated=sum of a URI.
type Options struct {
	Pick    Pick
	Weights Weights
}

// ParseOptions reads the options of a URI.
func ParseOptions(params []graph.Param) (o Options, err error) {
	if o.Weights, err = parseWeights(params); err != nil {
		return o, err
	}
	o.Pick, err = ParsePick(params)
	return o, err
}

// MatrixWeights is the Name of weights that are the values of a matrix.
const MatrixWeights = "value"

func parseWeights(params []graph.Param) (w Weights, err error) {
	repeated := ""
	for _, p := range params {
		switch p.Key {
		case "weight":
			w.Name, err = graph.PathOf(p.Value)
		case "repeated":
			repeated = p.Value
		}
		if err != nil {
			return w, err
		}
	}
	w.Sum = repeated != ""
	return w, graph.CheckRepeated(repeated, w.Name)
}

// Query spells options in fixed order, with the sign in front of them: "" where none is given.
func (o Options) Query() string {
	var keys []string
	if o.Pick.Given {
		keys = append(keys, o.Pick.Option())
	}
	if w := o.Weights; w.Name != "" {
		keys = append(keys, "weight="+graph.EscapePath(w.Name))
	}
	if o.Weights.Sum {
		keys = append(keys, "repeated=sum")
	}
	if len(keys) == 0 {
		return ""
	}
	return "?" + strings.Join(keys, "&")
}
