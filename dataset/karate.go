package dataset

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"ndls/dataset/graph"
)

// karateFactions says for each member of the club whom he followed after it
// broke up: 0 for the instructor, Mr. Hi, 1 for the officers.
const karateFactions = "0000000001000011001010111111111111"

// karateTies are the 78 ties of Zachary's karate club, one a line, members counted from 0.
// W. W. Zachary, Journal of Anthropological Research 33 (1977) 452-473. Some
// copies lack the tie 8-30.
//
//go:embed karate.txt
var karateTies string

func openKarate(_ context.Context, rest string, _ Options) (Dataset, error) {
	if rest != "" {
		return nil, graph.BadURI("karate:%s: this dataset has no options", rest)
	}
	var ties []Edge
	for line := range strings.Lines(karateTies) {
		var e Edge
		if _, err := fmt.Sscan(line, &e.U, &e.V); err != nil {
			return nil, err
		}
		ties = append(ties, e)
	}
	const nodes = int64(len(karateFactions))
	return &counted{
		info: Info{
			Name: "karate", Identity: "karate:", NumNodes: nodes,
			Classes: []string{"Mr. Hi", "Officer"}, HasLabels: true, EdgeHint: int64(len(ties)),
		},
		nodes: nodes, rows: int64(len(ties)), labelled: nodes,
		edge:  func(i int64) Edge { return ties[i] },
		label: func(node int64) int32 { return int32(karateFactions[node] - '0') },
	}, nil
}
